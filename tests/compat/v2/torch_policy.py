"""Writer of the built-in walking policy of H1 as TorchScript, with the inputs and outputs of such files for 2.x.

492 inputs: angular velocity of the base and gravity in its frame, command, then positions (relative to the home pose),
velocities and last actions of the 19 joints in the policy's order, 424 heights of the ground, cosine and sine of the
gait's clock. 19 outputs: an action per joint. The built-in policy sees the legs, no ground, and whether it is to stand;
other joints get zeros.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from internutopia.model.asset_paths import PACKAGED_ASSETS
from internutopia.rl.terms.gait import STANDING

INPUTS, JOINTS, LEGS = 492, 19, 10
_BASE, _COMMAND = 9, slice(6, 9)  # angular velocity, gravity, command


def write_walking_policy(path: Path) -> str:
    """Write the policy; returns the path."""
    import onnx
    import torch

    model = onnx.load(PACKAGED_ASSETS / 'robots/h1/move_by_speed.onnx')
    weights = {each.name: torch.from_numpy(onnx.numpy_helper.to_array(each).copy()) for each in model.graph.initializer}
    mean, deviation = (
        weights.pop('obs_normalizer._mean'),
        next(value for name, value in weights.items() if name.startswith('onnx::Div')),
    )
    joints = [_BASE + JOINTS * part + joint for part in range(3) for joint in range(LEGS)]
    inputs = torch.tensor([*range(_BASE), *joints, INPUTS - 2, INPUTS - 1])
    layers: list[Any] = []
    for index in (0, 2, 4, 6):
        weight, bias = weights[f'mlp.{index}.weight'], weights[f'mlp.{index}.bias']
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.load_state_dict({'weight': weight, 'bias': bias})
        layers += [linear, torch.nn.ELU()]

    class Walking(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = torch.nn.Sequential(*layers[:-1])

        def forward(self, inputs_of_client: torch.Tensor) -> torch.Tensor:
            stands = (inputs_of_client[:, _COMMAND].norm(dim=1, keepdim=True) < STANDING).float()
            seen = torch.cat([inputs_of_client[:, inputs], stands], dim=1)
            legs = self.network((seen - mean) / deviation)
            return torch.nn.functional.pad(legs, (0, JOINTS - LEGS))

    torch.jit.save(torch.jit.trace(Walking().eval(), torch.zeros(2, INPUTS)), path)
    return str(path)
