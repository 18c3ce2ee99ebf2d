"""Cart-pole: balance a pole on a cart."""

from __future__ import annotations

import math
import os
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

ASSET = 'robots/cart_pole/cart_pole.xml'


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 500,
    gravity: float = 9.81,
    pole_length: float = 1.0,
    pole_mass: float = 0.1,
    cart_mass: float = 1.0,
    force: float = 10.0,
    start: float = 0.05,
    discrete: bool = False,
    threads: int | None = None,
) -> Config:
    """Return envs with one cart-pole each, at 50 steps per second.

    The action is the push on the cart `(1,)`, -1..1; the observation position [m] and angle [rad], then their speeds.
    Each second upright is a reward of 1. An episode ends when the pole leans by more than 0.2 rad or the cart is
    2.4 m from the middle.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        gravity: towards the ground [m/s²].
        pole_length: from the hinge to the tip [m].
        pole_mass: mass of the pole [kg].
        cart_mass: mass of the cart [kg].
        force: push of an action of 1 [N].
        start: positions and speeds at the start of an episode are sampled from -start..start; 0 always starts upright.
        discrete: whether the action is a choice instead, 0 for a full push to the left (-x), 1 for one to the right.
        threads: threads of the physics engine; None means one per core.
    """
    learning = LearningCfg(
        action=ActionCfg(controller='actuators', choices=[[-1.0], [1.0]] if discrete else None),
        observations=[ObservationTermCfg(term='joint_positions'), ObservationTermCfg(term='joint_velocities')],
        rewards=[RewardTermCfg(term='alive')],
        terminations=[
            TerminationTermCfg(term='joint_outside', params={'joint': 'slider', 'low': -2.4, 'high': 2.4}),
            TerminationTermCfg(term='joint_outside', params={'joint': 'hinge', 'low': -0.2, 'high': 0.2}),
        ],
        randomizations=[
            RandomizationTermCfg(term='joint_offset', params={'position': (-start, start), 'velocity': (-start, start)})
        ],
    )
    robot = GenericRobotCfg(
        name='cart_pole',
        usd_path=model_file(gravity, pole_length, pole_mass, cart_mass, force),
        fixed_base=True,
        controllers=[ActuatorControllerCfg()],
    )
    task = SingleInferenceTaskCfg(robots=[robot], learning=learning, max_episode_steps=max_episode_steps)
    return endless(task, num_envs, seed, physics_dt=1 / 200, substeps=4, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task: half a minute for a pole that stays up."""
    return TrainingCfg(
        env_num=64,
        iterations=60,
        num_steps=32,
        hidden_dims=(64, 64),
        init_std=0.6,
        normalize=False,
        epochs=8,
        mini_batches=4,
        learning_rate=2e-3,
        desired_kl=None,
        gamma=0.98,
        entropy=0.0,
        save_every=10,
    )


def model_file(
    gravity: float = 9.81, pole_length: float = 1.0, pole_mass: float = 0.1, cart_mass: float = 1.0, force: float = 10.0
) -> str:
    """Return an MJCF file of such a cart-pole: the packaged one by default; others last as long as the process.

    The parameters are those of `config`; ValueError if one is not a finite number or, except for gravity, not positive.
    """
    import mujoco

    from internutopia.model.asset_paths import resolve

    values = (gravity, pole_length, pole_mass, cart_mass, force)
    if values == model_file.__defaults__:
        return ASSET
    for name, value in zip(('pole_length', 'pole_mass', 'cart_mass', 'force'), values[1:], strict=True):
        if not 0.0 < value < math.inf:
            raise ValueError(f'{name} must be a positive number, got {value!r}')
    if not math.isfinite(gravity):
        raise ValueError(f'gravity must be a number, got {gravity!r}')
    spec = mujoco.MjSpec.from_file(str(resolve(ASSET)))
    spec.option.gravity = [0.0, 0.0, -gravity]
    spec.geom('pole').fromto[5] = pole_length
    spec.geom('pole').mass = pole_mass
    spec.geom('cart').mass = cart_mass
    spec.actuator('push').gear[0] = force
    spec.compile()
    # shared with worker processes, and removed at the end of the process that made it
    file = Path(get_temp_dir()) / f'cart_pole_{"_".join(map(repr, values))}.xml'
    draft = file.with_suffix(f'.{os.getpid()}')
    draft.write_text(spec.to_xml())
    draft.replace(file)  # at once: a sibling may be reading it
    return str(file)
