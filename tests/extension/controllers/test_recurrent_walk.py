"""A walking controller with a recurrent policy: a memory for each env."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from walking_hopper import send, walk_of

from internutopia.core.vec_env import Env

Start = Callable[..., Env]
FIELDS: dict[str, Any] = {
    'robot': 'GenericRobot',
    'step_dt': 0.02,
    'joint_names': ['tail', 'hip'],
    'offset': [0.1, 0.2],
    'scale': [0.5, 0.25],
    'observations': [{'term': 'command', 'params': {'name': 'speed'}}],
    'command': 'speed',
    'command_low': [-1.0] * 3,
    'command_high': [1.0] * 3,
}


def test_a_policy_with_a_memory_begins_anew_with_each_episode(start: Start, hopper: Any, tmp_path: Path) -> None:
    """It counts the calls: its actions are 0.1 for the first one of an episode, then 0.2, and so on."""
    import torch

    class Counter(torch.nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer('count', torch.zeros(1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count[:] = self.count + 0.1
            return self.count.expand(x.shape[0], 2)

    torch.jit.save(torch.jit.script(Counter()), tmp_path / 'counter.pt')
    file = tmp_path / 'policy.yaml'
    file.write_text(yaml.safe_dump({'network': 'counter.pt'} | FIELDS))
    env = start(hopper(str(file), joint_names=None), env_num=2, rate=50)

    def targets(*speeds: Any) -> Any:
        send(env, *speeds)
        tails = np.array([walk_of(env).given[env_id][-1][0] for env_id in range(2)])
        return (tails - FIELDS['offset'][0]) / FIELDS['scale'][0]

    ahead = [0.1, 0.0, 0.0]
    for calls in (1, 2, 3):
        np.testing.assert_allclose(targets(ahead, ahead), [0.1 * calls] * 2, atol=1e-5)
    np.testing.assert_allclose(targets(ahead, None), [0.4, 0.3], atol=1e-5)
    env.reset([0])
    np.testing.assert_allclose(targets(ahead, ahead), [0.1, 0.4], atol=1e-5)
