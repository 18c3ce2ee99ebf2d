"""Films of evaluated episodes of navigation: the best, the worst that reached their goal, and those that did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from internutopia.cli.film import Recording
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.rendering.video import Video

if TYPE_CHECKING:
    from internutopia_extension.configs.tasks import NavigationTaskCfg
    from internutopia_extension.navigation.policies import Policy

_FLASH_STEP = 0.25  # s that a step takes in a film of a robot that is put further: 1 m/s


def check_films() -> None:
    """Check that films can be written here. ImportError if not."""
    Video(Path('film.mp4'), rate=1.0).close()


def film_episodes(
    tasks: Sequence[NavigationTaskCfg],
    results: Sequence[Mapping[str, Any]],
    count: int,
    policy: Policy,
    simulator: SimConfig,
    flash: bool,
    folder: Path,
) -> dict[Path, str]:
    """Run chosen episodes of each scene again and film the robot.

    Args:
        tasks: the tasks.
        results: value of the `NavigationMetric` of each episode.
        count: number of the best, of the worst and of those that did not reach the goal.
        policy: policy that runs them.
        simulator: simulation settings of the evaluation.
        flash: the robot is put from place to place; a step then takes a quarter of a second in the film.
        folder: folder of the films.

    Returns:
        The files, and the episode in each.
    """
    from internutopia_extension.navigation.pictures import notable

    films = {}
    known = {(task.episode.scene, task.episode.episode_id): task for task in tasks}
    for number, scene in enumerate(dict.fromkeys(scene for scene, _ in known)):
        best, worst, failed = notable(results, scene, count)
        for kind, chosen in (('best', best), ('worst', worst), ('failed', failed)):
            for place, result in enumerate(chosen, 1):
                file = folder / f'film_{number}_{Path(scene).stem}_{kind}_{place}.mp4'
                _film(known[scene, result['episode']], policy, simulator, _FLASH_STEP if flash else None, file)
                films[file] = f'episode {result["episode"]!r} of {scene}'
    return films


def _film(task: NavigationTaskCfg, policy: Policy, simulator: SimConfig, step_dt: float | None, file: Path) -> None:
    from internutopia_extension.navigation.policy_run import PolicyRun

    with closing(Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))) as env:
        with Recording(env, file, env_id=0, step_dt=step_dt) as recording:

            def on_step(ended: int) -> bool:
                recording.on_step()
                return True

            PolicyRun(env, policy).run(on_step)
