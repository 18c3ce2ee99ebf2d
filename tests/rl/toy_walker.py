"""Toy walker: a robot that floats without gravity, and the task to move as commanded, for tests that import it."""

from pathlib import Path

from internutopia.config import Config, SimConfig
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.rl import register_task
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ID = 'toy_walker:Toys/Floater-v0'
STEP = 0.02  # s
MODEL = Path(__file__).parents[1] / 'assets' / 'floater.xml'
ACTION_SCALE = 0.5


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    forward: tuple[float, float] = (-0.5, 1.0),
    yaw_rate: tuple[float, float] = (-1.0, 1.0),
    limit: float = 100.0,
    sees_height: bool = False,
    max_episode_steps: int = 20,
    threads: int | None = 1,
) -> Config:
    """Envs with one robot each; an episode ends `limit` [m] away from the origin."""
    ranges = {'forward': forward, 'lateral': (0.0, 0.0), 'yaw_rate': yaw_rate, 'standing': 0.5, 'by_level': True}
    learning = LearningCfg(
        action=ActionCfg(controller='arm', scale=ACTION_SCALE, offset='home'),
        commands={'velocity': CommandTermCfg(term='velocity', params=ranges)},
        observations=[
            ObservationTermCfg(term='base_angular_velocity', noise=0.5),
            ObservationTermCfg(term='command', params={'name': 'velocity'}, delay=1),
            ObservationTermCfg(term='phase', params={'period': 5 * STEP}),
            *([ObservationTermCfg(term='base_height')] if sees_height else []),
        ],
        critic_observations=[ObservationTermCfg(term='base_linear_velocity')],
        rewards=[RewardTermCfg(term='alive')],
        terminations=[TerminationTermCfg(term='left_area', params={'radius': limit})],
        randomizations=[RandomizationTermCfg(term='push', params={'speed': 9.0}, interval=(STEP, STEP))],
    )
    robot = GenericRobotCfg(
        usd_path=str(MODEL),
        initial_joint_positions={'shoulder': 0.1},
        controllers=[JointControllerCfg(name='arm', joint_names=['shoulder'])],
    )
    task = SingleInferenceTaskCfg(robots=[robot], learning=learning, max_episode_steps=max_episode_steps)
    return Config(
        simulator=SimConfig(physics_dt=STEP / 2, substeps=2, threads=threads),
        env_num=num_envs,
        task_configs=[task],
        episode_order='cycle',
        metrics_save_path=None,
        seed=seed,
    )


def training(**options: object) -> TrainingCfg:
    """Updates that take no time; more of them for nearer limits."""
    return TrainingCfg(
        env_num=8,
        iterations=2 if options.get('limit', 100.0) == 100.0 else 3,
        num_steps=4,
        hidden_dims=(8,),
        epochs=1,
        mini_batches=1,
        save_every=1,
    )


register_task('Toys/Floater-v0', __name__)
