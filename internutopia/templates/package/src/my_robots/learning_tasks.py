"""Learning task: bring the platform to a height that is another one in each episode, and hold it there."""

from __future__ import annotations

from typing import Any

from internutopia import Config, SimConfig, TaskCfg
from internutopia.rl import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TrainingCfg,
    term,
)
from my_robots.configs import GlideControllerCfg, LiftCfg

# ids for `gymnasium.make` and `internutopia train`: the module with `config`, and arguments of `config`
TASKS: dict[str, tuple[str, dict[str, Any]]] = {'MyRobots/Lift-v0': (__name__, {})}


@term('observation', 'my_robots_missing_height')
def missing_height(state: Any, name: str) -> Any:
    """Return the height that the platform lacks to that of command `name` `(n, 1)` [m]."""
    return state.command(name) - state.joint_positions


@term('reward', 'my_robots_at_height')
def at_height(state: Any, name: str, tolerance: float = 0.2) -> Any:
    """Return 1 - |missing| / tolerance, with the missing height to that of command `name` [m]."""
    return 1.0 - abs(missing_height(state, name)[:, 0]) / tolerance


def config(num_envs: int = 1, seed: int | None = None, *, seconds: float = 4.0, threads: int | None = None) -> Config:
    """Return the config of envs for learning, at 50 steps per second.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        seconds: length of an episode [s].
        threads: threads of the physics engine; None means one per core.
    """
    step_dt = 0.02
    learning = LearningCfg(
        action=ActionCfg(controller='glide', scale=0.5),  # actions around -1..1 are up to 0.5 m/s
        commands={'height': CommandTermCfg(term='uniform', params={'low': [0.1], 'high': [0.9]})},
        observations=[
            ObservationTermCfg(term='my_robots_missing_height', params={'name': 'height'}, scale=5.0),  # around -1..1
        ],
        rewards=[RewardTermCfg(term='my_robots_at_height', params={'name': 'height'})],
    )
    task = TaskCfg(
        type='SingleInferenceTask',  # without its own end
        robots=[LiftCfg(controllers=[GlideControllerCfg(step_dt=step_dt)])],
        learning=learning,
        max_episode_steps=round(seconds / step_dt),
    )
    return Config(
        simulator=SimConfig(physics_dt=step_dt / 5, substeps=5, threads=threads),
        env_num=num_envs,
        task_configs=[task],
        episode_order='cycle',
        metrics_save_path=None,
        seed=seed,
    )


def training(**options: Any) -> TrainingCfg:
    """Return the default settings of `internutopia train`."""
    return TrainingCfg(env_num=32, iterations=50, num_steps=32, hidden_dims=(32, 32), save_every=10)
