"""Built-in terms compiled: the values that they have otherwise."""

from typing import Any

import numpy as np
import pytest
from term_cases import EVERY_CASE

from internutopia.engines.batched.world import BatchedWorld
from internutopia.rl.compiled.kernel import Inputs, Kernel
from internutopia.rl.compiled.nodes import UntraceableError
from internutopia.rl.compiled.state import TracedState
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term

pytest.importorskip('llvmlite')

TOLERANCE = 1e-6  # float32, from another exponential function and sums in another order
SORTS = {('observation', 'nearest_objects')}  # what no kernel can do
KINDS = 'observation', 'reward', 'termination'


@pytest.mark.parametrize(('kind', 'name', 'params'), [case for case in EVERY_CASE if case.values[0] in KINDS])
def test_values_of_a_kernel(host: RobotState, kind: Any, name: str, params: dict[str, Any]) -> None:
    function = look_up_term(kind, name, params)
    assert isinstance(host.world, BatchedWorld)
    (batch,) = host.world.env_batches
    inputs = Inputs()
    state = TracedState(host, batch, inputs)
    if (kind, name) in SORTS:
        with pytest.raises(UntraceableError, match='depends on a value'):
            state.traced(function)
        return
    host.episode_values.clear()
    wanted = function(host)
    remembered = {name: values.copy() for name, values in host.episode_values.items()}
    for values in host.episode_values.values():
        values[:] = 0.0
    output = np.zeros(wanted.shape, wanted.dtype)
    slots = np.flatnonzero(batch.envs >= 0)
    Kernel(inputs, [(state.traced(function), output)]).of_rows(batch.envs[slots], slots)()
    np.testing.assert_allclose(output, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    for name, values in remembered.items():
        np.testing.assert_allclose(host.episode_values[name], values, rtol=TOLERANCE, atol=TOLERANCE)
