"""Joint order of a policy (gym) against joint order of the simulation."""

from typing import Any

from internutopia.util import did_you_mean


class gym_adapter:  # noqa: N801 - the public name of 2.x
    """Reordering of joint values between a policy and the simulation.

    Arrays are numpy arrays or torch tensors whose last axis runs over joints; results are new arrays. Either list may
    name a subset of the other, as long as what is requested is there.

    Args:
        joint_names_gym: Joint names in the order of the policy.
        joint_names_sim: Joint names in the order of the simulation.
    """

    def __init__(self, joint_names_gym: list[str], joint_names_sim: list[str]) -> None:
        self.joint_names_gym = joint_names_gym
        self.joint_names_sim = joint_names_sim

    def gym2sim(self, action: Any) -> Any:
        """Reorder an action (..., k) from the order of the policy to the order of the simulation."""
        return self.rearange_order(action, self.joint_names_gym, self.joint_names_sim)

    def sim2gym(self, obs: Any) -> Any:
        """Reorder joint values (..., k) from the order of the simulation to the order of the policy."""
        return self.rearange_order(obs, self.joint_names_sim, self.joint_names_gym)

    @staticmethod
    def rearange_order(src: Any, from_joint_names: list[str], to_joint_names: list[str]) -> Any:
        """Select the values of `to_joint_names`, in that order.

        Args:
            src: Values (..., k) with one entry per name in `from_joint_names`.
            from_joint_names: The order that `src` has.
            to_joint_names: The order of the result, (..., len(to_joint_names)).

        Raises:
            ValueError: `src` has another length, or a wanted joint is not among `from_joint_names`.
        """
        if src.shape[-1] != len(from_joint_names):
            raise ValueError(f'expected {len(from_joint_names)} joint values, got an array of shape {tuple(src.shape)}')
        column = {name: index for index, name in enumerate(from_joint_names)}
        for name in to_joint_names:
            if name not in column:
                raise ValueError(f"there is no joint '{name}' to take a value from; {did_you_mean(name, column)}")
        return src[..., [column[name] for name in to_joint_names]]
