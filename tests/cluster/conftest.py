"""One Ray cluster on this machine for all tests of distribution, and two Envs that most of them share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray_toys
import toys
from ray_toys import ENVS, ENVS_EACH, PROCS, Pair

from internutopia.config import Config, ControllerCfg, RobotCfg, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.core.registries import REGISTRIES
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg


@pytest.fixture(scope='session')
def cluster(cache_folder: Path) -> Iterator[None]:
    """A Ray cluster of two CPUs."""
    import ray
    from ray import cloudpickle

    options = {'num_cpus': 2, 'include_dashboard': False, 'logging_level': logging.ERROR, 'log_to_driver': False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('RAY_USAGE_STATS_ENABLED', '0')
        patch.setenv('RAY_worker_niceness', '0')
        for attempts_left in reversed(range(5)):
            try:
                ray.init(address='local', **options)
                break
            except Exception as error:  # Ray waits 30 s for its raylet, which a busy machine may not keep
                if 'timed out during startup' not in str(error) or not attempts_left:
                    raise
                ray.shutdown()
        for module in (toys, ray_toys):
            cloudpickle.register_pickle_by_value(module)  # pyright: ignore[reportPrivateImportUsage]
        yield
        ray.shutdown()


@pytest.fixture(autouse=True)
def own_classes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other test files have registered stays here: workers cannot import them."""
    import_extensions()
    known = ('internutopia', 'toys', 'ray_toys', request.module.__name__)
    for classes in REGISTRIES.values():
        for name in [name for name, cls in classes.items() if not cls.__module__.startswith(known)]:
            monkeypatch.delitem(classes, name)


@pytest.fixture(scope='session')
def distributed(make_config: Callable[..., Config]) -> Callable[..., Config]:
    """Makes a config of two workers with two envs each, or as its arguments say."""

    def make(
        proc_num: int = PROCS,
        env_num: int = ENVS_EACH,
        retries: int = 2,
        step_timeout: float | None = None,
        **fields: Any,
    ) -> Config:
        distribution = RayDistributionCfg(proc_num=proc_num, episode_retries=retries, step_timeout=step_timeout)
        return make_config(env_num=env_num, seed=0, **fields).distribute(distribution)

    return make


@pytest.fixture(scope='session')
def toy(make_task: Callable[..., TaskCfg], make_robot: Callable[..., RobotCfg]) -> Callable[..., TaskCfg]:
    """Makes the config of a `RayToy`, whose arm is driven by a `JointController`, or pushed."""
    drive = JointControllerCfg(name='drive', joint_names=['shoulder', 'elbow'])
    arm = make_robot(controllers=[drive, ControllerCfg(name='push', type='ToyPush')])

    def make(scene: str | None = None, **fields: Any) -> TaskCfg:
        return make_task(scene, **{'type': 'RayToy', 'robots': [arm], **fields})

    return make


@pytest.fixture
def pair(
    shared: list[Pair],
    make_config: Callable[..., Config],
    distributed: Callable[..., Config],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    """A local Env and a distributed one, both without episodes."""
    if not shared:
        folder = tmp_path_factory.mktemp('results')
        local = Env(make_config(env_num=ENVS, seed=0, metrics_save_path=folder / 'local.jsonl'))
        shared.append(Pair(local, Env(distributed(metrics_save_path=folder / 'ray.jsonl'))))
        shared[0].clear()
    yield shared[0]
    shared[0].clear()


@pytest.fixture(scope='session')
def shared(cluster: None) -> Iterator[list[Pair]]:
    """The pair that tests share, once one of them has asked for it."""
    pairs: list[Pair] = []
    yield pairs
    for pair in pairs:
        pair.local.close()
        pair.ray.close()
