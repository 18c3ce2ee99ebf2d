"""Contract of `Env`: one set of tests, run on every backend.

`mujoco_warp` runs on the CPU, or where Warp is told to; `physx` where it is installed, and there Isaac Sim, too: the
stand-in of `tests/isaac_sim`, in the two generations of its API. What a backend does not promise is skipped, with the
reason, in `EXCEPTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import isaac_sim
import numpy as np
import pytest
from markers import need_physx, slow_but
from warp_device import DEVICE

from internutopia.config import Config

BACKENDS: dict[str, dict[str, Any]] = {
    'mujoco': {},
    'mujoco_warp': {'backend': 'mujoco_warp', 'device': DEVICE},
    'physx': {'backend': 'physx'},
    'isaac_sim-5.1.0': {'backend': 'isaac_sim'},
    'isaac_sim-6.0.1': {'backend': 'isaac_sim'},
}

_BOUNDED = 'PhysX bounds velocities, so that no effort makes a robot diverge'
_CONTACTS_KEPT = 'PhysX keeps contacts from step to step outside of states: what bounces goes on in another way'

# Tests by name that a backend does not pass, and why; there are no others
EXCEPTIONS: dict[str, dict[str, str]] = {
    'mujoco_warp': {
        'test_an_error_of_the_engine_itself': 'it is one of mujoco.batch',
        'test_gymnasiums_vector_envs_run_it': 'it forks, which CUDA does not survive (it passes on the CPU device)',
    },
    'physx': {
        'test_going_on_from_a_saved_state': _CONTACTS_KEPT,
        'test_in_another_env_object_and_another_process': _CONTACTS_KEPT,
        'test_gymnasiums_vector_envs_run_it[physx-AsyncVectorEnv]': 'it forks, which PhysX does not survive',
        'test_an_error_of_the_engine_itself': 'it is one of mujoco.batch',
        'test_an_env_that_diverges_is_terminated_and_the_others_go_on[physx-1-diverge_by_effort]': _BOUNDED,
        'test_an_env_that_diverges_is_terminated_and_the_others_go_on[physx-2-diverge_by_effort]': _BOUNDED,
    },
}
_ONE_STAGE = 'there is one stage in a process, for one Env at a time'
EXCEPTIONS['isaac_sim'] = {
    **{test.replace('[physx-', '[isaac_sim-'): reason for test, reason in EXCEPTIONS['physx'].items()},
    'test_two_envs_in_one_process_do_not_meet': _ONE_STAGE,
    'test_gymnasiums_vector_envs_run_it': _ONE_STAGE,
}
# PhysX: what it keeps of contacts, through bounces
ROUNDED = {'isaac_sim': 2e-2, 'physx': 2e-2}


@pytest.fixture(params=slow_but('mujoco', of=BACKENDS))
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Fields of `SimConfig` that choose the backend."""
    name, _, version = request.param.partition('-')
    exceptions = EXCEPTIONS.get(name, {})
    test = request.node.name.replace(request.param, name)
    if reason := exceptions.get(request.node.originalname) or exceptions.get(test):
        pytest.skip(reason)
    if name in ('physx', 'isaac_sim'):
        need_physx()
    if name == 'isaac_sim':
        isaac_sim.install(monkeypatch, version)
    return BACKENDS[request.param]


@pytest.fixture
def make_config(make_config: Callable[..., Config], backend: dict[str, Any]) -> Callable[..., Config]:
    """The configs of the other tests on the backend."""

    def make(tasks: Any = 2, env_num: int = 2, sim: dict[str, Any] | None = None, **fields: Any) -> Config:
        return make_config(tasks, env_num, {**backend, **(sim or {})}, **fields)

    return make


@pytest.fixture
def assert_same(backend: dict[str, Any]) -> Callable[[Any, Any], None]:
    """Compares what came of the same actions: to the bit, but on engines whose states do not hold all they go by."""
    tolerance = ROUNDED.get(backend.get('backend', ''), 0.0)

    def check(actual: Any, expected: Any) -> None:
        if not tolerance:
            np.testing.assert_equal(actual, expected)
        elif isinstance(expected, Mapping):
            assert actual.keys() == expected.keys()
            for key in expected:
                check(actual[key], expected[key])
        elif isinstance(expected, list | tuple):
            for one, other in zip(actual, expected, strict=True):
                check(one, other)
        elif isinstance(expected, float | np.ndarray) and np.asarray(expected).dtype.kind == 'f':
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_equal(actual, expected)

    return check
