"""Config of walking policies."""

from typing import Self

from pydantic import model_validator

from internutopia.config.fields import PathStr
from internutopia.config.robot import ControllerCfg
from internutopia.util import did_you_mean


class MoveBySpeedControllerCfg(ControllerCfg):
    """Walking at commanded forward, lateral (m/s) and rotation (rad/s) speeds, body frame."""

    type: str = 'MoveBySpeedController'
    joint_names: list[str] | None = None
    """Joints that the controller drives, in the order of its joint targets; None means those of the policy."""
    policy_weights_path: PathStr
    """The walking policy: an ONNX or TorchScript file, or a YAML file that describes one."""
    policies: dict[str, PathStr] = {}
    """Files of other walking policies by name, e.g. `'rough'` for ground that is not level."""
    policy: str | None = None
    """Name of the policy in `policies` to walk with; None means `policy_weights_path`."""

    @model_validator(mode='after')
    def _check_policy(self) -> Self:
        if self.policy is not None and self.policy not in self.policies:
            raise ValueError(
                f'there is no policy {self.policy!r} in policies; {did_you_mean(self.policy, self.policies)}'
            )
        return self

    @property
    def policy_file(self) -> str:
        """File of the policy to walk with, as the config gives it."""
        return self.policy_weights_path if self.policy is None else self.policies[self.policy]
