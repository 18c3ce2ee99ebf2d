"""PPO of rsl_rl with a bounded learning rate, and mirrored samples: left and right swapped, as a task allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from tensordict import TensorDict
from typing_extensions import override

from internutopia.config.learning import LearningCfg, ObservationTermCfg
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.state import RobotState
from internutopia.rl.symmetry import Mirror, mirror_joints
from internutopia.rl.terms.registry import Kind, look_up_mirror
from internutopia.rl.training.rsl_rl import PPO, MLPModel, RolloutStorage, Symmetry
from internutopia.util.arrays import to_host


class BoundedPPO(PPO):
    """PPO whose adaptive learning rate stays within `BOUNDS` times `share`.

    Left alone it can fall so low in the first updates, while the policy changes quickly, that a humanoid never learns
    more than to stand.
    """

    BOUNDS = (1e-4, 1e-3)
    share = 1.0

    @property
    @override
    def learning_rate(self) -> float:
        """Learning rate of the next step of the optimizer."""
        if self.schedule != 'adaptive':
            return self._learning_rate
        low, high = self.BOUNDS
        return min(max(self._learning_rate, low * self.share), high * self.share)

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._learning_rate = value


class MirroredSamples(Symmetry):
    """Learning from every sample a second time, left and right swapped (Mittal et al., ICRA 2024).

    rsl_rl would also compute its mirror loss then, even if only to log it, in a quarter of the time of learning.

    Args:
        core: envs of a robot that is symmetric, after a reset.
        device: of the samples.
    """

    def __init__(self, core: ArrayRunner, device: str | torch.device):
        super().__init__(core, self._with_images, use_data_augmentation=True)  # pyright: ignore[reportArgumentType]
        policy, critic, self._action = (_Image(mirror, device) for mirror in task_mirrors(core))
        self._observations = {'policy': policy, 'critic': critic}

    @override
    def compute_loss(self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int) -> torch.Tensor:
        """Do nothing; returns None."""
        return torch.zeros(())

    def _with_images(self, env: ArrayRunner, obs: TensorDict, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor]:
        seen = {name: torch.as_tensor(obs[name]) for name in self._observations}
        both = {name: torch.cat([values, self._observations[name](values)]) for name, values in seen.items()}
        return TensorDict(both, [2 * len(actions)]), torch.cat([actions, self._action(actions)])


class _Image:
    """A mirror for tensors."""

    def __init__(self, mirror: Mirror, device: str | torch.device):
        self._order = torch.as_tensor(mirror.order, device=device)
        self._signs = torch.as_tensor(mirror.signs, device=device)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values[:, self._order] * self._signs


HOME = 0.01  # rad or m, that a home pose may differ from its image


class TaskMirrors(NamedTuple):
    """Mirrors of the observations of a policy and a critic, and of actions."""

    policy: Mirror
    critic: Mirror
    action: Mirror


def task_mirrors(core: ArrayRunner) -> TaskMirrors:
    """Return the mirrors of the task of envs that have been reset.

    Raises:
        ValueError: actions are no joint targets, a term has no mirror, or the robot, its home pose
            or its action scale differ left and right.
    """
    learning, state, subset = core.learning, core.state, core.controller.get_joint_subset()
    # a controller that drives joints may take other actions, such as speeds
    if subset is None or learning.action.scale is None:
        raise ValueError('only actions that move the targets of joints (`ActionCfg.scale`) have a mirror')
    action = mirror_joints(state, subset.joint_names)
    for name, values in (('home pose', state.action_offset), ('action scale', state.action_scale)):
        _check_alike(name, subset.joint_names, action, to_host(values), signed=name == 'home pose')

    def mirrors(observations: Sequence[ObservationTermCfg]) -> list[Mirror]:
        return [action if cfg.term == 'last_action' else _of_term(cfg, learning, state) for cfg in observations]

    policy = mirrors(learning.one_group('mirrored samples'))
    critic = [*policy, *mirrors(learning.critic_observations)]  # which sees what the policy sees, too
    return TaskMirrors(Mirror.joined(policy), Mirror.joined(critic), action)


def _of_term(cfg: ObservationTermCfg, learning: LearningCfg, state: RobotState) -> Mirror:
    kind: Kind = 'observation'
    name, params = cfg.term, cfg.params
    if name == 'command':  # is mirrored by the mirror of its own term
        command = learning.commands[params['name']]
        kind, name, params = 'command', command.term, command.params
    mirror = look_up_mirror(kind, name)
    if mirror is None:
        raise ValueError(f'{kind} term {name!r} defines no mirror image: `@term({kind!r}, mirror=...)`')
    return mirror(state, **params) if callable(mirror) else Mirror.of_signs(mirror)


def _check_alike(what: str, joints: Sequence[str], mirror: Mirror, values: Any, signed: bool) -> None:
    image = values[mirror.order] * (mirror.signs if signed else 1.0)
    wrong = np.flatnonzero(np.abs(image - values) > HOME)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f'{what} of joint {joints[i]!r} is {values[i]:g}, its mirror image would be {image[i]:g}: '
            'what differs left and right cannot be mirrored'
        )
