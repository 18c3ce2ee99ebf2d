"""Command `internutopia evaluate nav`: a policy on a file of navigation episodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    Overwrite,
    Processes,
    Record,
    RecordFormat,
    RecordOnly,
    RecordOptions,
    RecordRate,
    Seed,
    Threads,
    check_results,
    interruption_hint,
    resuming_command,
)
from internutopia.cli.run import PATIENCE
from internutopia.util import log
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS, MAX_SECONDS
from internutopia.util.imports import import_named
from internutopia.util.interrupts import interrupts

if TYPE_CHECKING:
    from internutopia.config import SimConfig
    from internutopia.navigation.summary import Estimate, SceneSummary
    from internutopia_extension.configs.tasks import NavigationTaskCfg
    from internutopia_extension.navigation.policies import Policy

_SHOWN = 5  # episodes left out, or failed, that are listed one by one
_COLUMNS = {
    'success': 'success',
    'spl': 'SPL',
    'soft_spl': 'soft SPL',
    'oracle_success': 'oracle success',
    'navigation_error': 'error [m]',
    'path_length': 'path [m]',
    'ndtw': 'nDTW',
    'sdtw': 'SDTW',
    'cls': 'CLS',
    'collisions': 'collisions',
}
_FLASH_STEP = 0.25  # s that a step takes in a film of a robot that is teleported: 1 m/s


@command('evaluate nav {source}')
def evaluate_nav(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help='Episode file, see docs/navigation.md.', metavar='EPISODES.yaml')],
    policy: Annotated[
        str,
        typer.Option(
            help='expert (uses the map), random, or module:function, which gets the task at the start of an episode.'
        ),
    ] = 'expert',
    robot: Annotated[str, typer.Option(help='Robot: aliengo, g1, gr1, h1 or jetbot.')] = 'h1',
    moves: Annotated[
        Literal['flash', 'discrete'],
        typer.Option(help='flash: teleport; discrete: walk or drive. Steps are 0.25 m and 15 degrees.'),
    ] = 'flash',
    envs: Annotated[int, typer.Option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs per process.')] = 8,
    processes: Processes = None,
    success_distance: Annotated[
        float | None,
        typer.Option(min=0.0, max=MAX_COUNT, help='Success radius of the goals in m; default: of the episodes.'),
    ] = None,
    distance: Annotated[Literal['geodesic', 'euclidean'], typer.Option(help='Metric of the distance to a goal.')] = (
        'geodesic'
    ),
    max_actions: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help='Maximum number of actions of an episode.')
    ] = 500,
    stuck: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=MAX_SECONDS, help='Seconds without motion after which a robot is stuck; default: never.'
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Folder for results.jsonl, report.json and pictures; default: out/<file name>.'),
    ] = None,
    video: Annotated[
        int,
        typer.Option(min=0, max=MAX_COUNT, help='Number of best, worst and failed episodes to film per scene.'),
    ] = 0,
    resume: Annotated[bool, typer.Option('--resume', help='Resume the evaluation in the folder.')] = False,
    overwrite: Overwrite = False,
    record: Record = None,
    record_format: RecordFormat = 'lerobot',
    only: RecordOnly = 'all',
    record_fps: RecordRate = None,
) -> int:
    """Evaluate navigation on a file of episodes: success, SPL, nDTW and others, with confidence intervals."""
    from internutopia.config import Config
    from internutopia.config.distribution import RayDistributionCfg
    from internutopia.core.vec_env import Env
    from internutopia.navigation.episodes import read_episodes
    from internutopia.navigation.summary import summarize
    from internutopia.rendering.video import Video
    from internutopia_extension.navigation import evaluation, robots
    from internutopia_extension.navigation.policy_run import PolicyRun

    recording = RecordOptions(record, record_format, only, record_fps)
    recording.check()
    folder = out or Path('out') / source.stem
    results = folder / 'results.jsonl'
    check_results(results, resume, overwrite)
    if video:
        Video(Path('film.mp4'), rate=1.0).close()  # an ImportError here rather than after the evaluation
    chosen = _policy(policy, seed)
    again = resuming_command(context)
    conditions = {'episodes_file': str(source), 'policy': policy, 'robot': robot, 'moves': moves, 'seed': seed}
    faults: list[str] = []
    tasks, unreachable, unusable = evaluation.navigation_tasks(
        read_episodes(source, faults),
        robots.navigation_robot(robot, moves),
        success_distance=success_distance,
        distance=distance,
        max_actions=max_actions,
        stuck_seconds=stuck,
        evaluated={'policy': policy, 'seed': seed},  # a part of what a result is of
    )
    faults += unusable
    without_way = [f'episode {each["episode"]!r} of {each["scene"]}: {each["reason"]}' for each in unreachable]
    if not tasks:
        raise ValueError(f'{source}: no episode can be gone{_listed([*faults, *without_way])}')
    total = len(tasks) + len(without_way) + len(faults)
    for some, fate in ((faults, 'are left out'), (without_way, 'have no way to the goal and count as failed')):
        if some:
            log.warning('%s: %d of %d episodes %s%s', source, len(some), total, fate, _listed(some))
    folder.mkdir(parents=True, exist_ok=True)
    config = Config(
        simulator=robots.simulation(moves, threads),
        env_num=min(envs, len(tasks)),
        task_configs=[*tasks],
        metrics_save_path=str(results),
        resume=resume,
    )
    if processes is not None:
        config = config.distribute(RayDistributionCfg(proc_num=processes))
    recorder = recording.recorder(config)
    with interrupts() as interruption, closing(Env(config)) as env:
        if not resume:
            env.results.start_over()
        run = PolicyRun(env, chosen)
        with (
            interruption_hint(f'stopped before the end; go on with: {again}'),
            recording.attached(env, recorder),
            interruption.deferred(PATIENCE),
        ):
            run.run(lambda ended: not interruption.is_set())
    measured = evaluation.read_results(results)
    missing = len(tasks) - len(measured)
    unknown = {'left_out': faults, 'failed': run.failures, 'without_result': missing}
    counted = [*measured, *unreachable]
    report = evaluation.report(counted, {**conditions, 'unreachable': without_way, **unknown})
    (folder / 'report.json').write_text(json.dumps(report, indent=2) + '\n')
    files = [folder / 'report.json']
    if measured:
        _print(summarize(counted), f'{policy}, {robot}, {moves}: {source}')
        if distance == 'geodesic':
            files += evaluation.draw_paths(tasks, measured, folder).values()
    print(*files, sep='\n')
    if video and not interruption.is_set():
        simulator = robots.simulation(moves, threads)
        films = _film_episodes(tasks, measured, video, chosen, simulator, moves == 'flash', folder)
        print(*(f'{file}: {episode}' for file, episode in films.items()), sep='\n')
    if run.failures:
        print(f'the policy failed in {len(run.failures)} episodes{_listed(run.failures)}', file=sys.stderr)
    if missing:
        print(f'{missing} of {len(tasks)} episodes have no result; go on with: {again}')
    return interruption.exit_code or int(bool(missing))


def _listed(faults: Sequence[str]) -> str:
    """Format the first of some faults, and the number of the others."""
    more = f'\n  and {len(faults) - _SHOWN} more' if len(faults) > _SHOWN else ''
    return ''.join(f'\n  {fault}' for fault in faults[:_SHOWN]) + more


def _policy(name: str, seed: int) -> Policy:
    """Return the policy of that name, or of a module. ValueError if there is none."""
    from internutopia_extension.navigation.policies import Expert, random_policy

    if name in ('expert', 'random'):
        return Expert if name == 'expert' else random_policy(seed)
    module_name, _, attribute = name.partition(':')
    if not attribute:
        raise ValueError(f"--policy: expected 'expert', 'random' or module:function, got {name!r}")
    module = import_named(module_name)
    if not hasattr(module, attribute):
        raise ValueError(f'--policy {name}: module {module_name!r} has no {attribute!r}')
    policy = getattr(module, attribute)
    if not callable(policy):
        raise ValueError(f'--policy {name}: expected a function of a task, got {policy!r}')
    return cast('Policy', policy)


def _print(summary: Mapping[str, SceneSummary], title: str) -> None:
    """Print a row for each scene and one for all, with the confidence interval below each figure."""
    from internutopia.navigation.summary import ALL, RATES

    columns = {name: header for name, header in _COLUMNS.items() if name in summary[ALL].figures}
    table = Table(box=None, header_style='bold', padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column('scene', overflow='fold')
    for header in ('episodes', *columns.values()):
        table.add_column(header, justify='right')
    rows = list(summary) if len(summary) > 2 else [ALL]  # one scene is all
    for name in rows:
        scene = summary[name]
        figures = [_figure(scene.figures.get(column), column in RATES) for column in columns]
        label = name if name == ALL else Path(name).name
        table.add_row(Text(label), str(scene.episodes), *figures)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 160  # a log has room for all columns
    console.print(title, soft_wrap=True)
    console.print(table)
    ends = ', '.join(f'{end} {count}' for end, count in summary[ALL].ends.items())
    console.print(f'ends: {ends}; 95 % intervals: Wilson for rates, bootstrap for means', soft_wrap=True)


def _figure(estimate: Estimate | None, is_rate: bool) -> str:
    if estimate is None:
        return '-'
    values = (f'{value:.1%}' if is_rate else f'{value:.3g}' for value in (estimate.mean, estimate.low, estimate.high))
    return '{}\n{}..{}'.format(*values)


def _film_episodes(
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
        flash: the robot is teleported; a step then takes a quarter of a second in the film.
        folder: folder of the films.

    Returns:
        The files, and the episode in each.
    """
    from internutopia_extension.navigation.evaluation import notable

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
    from internutopia.cli.film import Film
    from internutopia.config import Config
    from internutopia.core.vec_env import Env
    from internutopia_extension.navigation.policy_run import PolicyRun

    with closing(Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))) as env:
        with Film(env, file, env_id=0, step_dt=step_dt) as film:

            def on_step(ended: int) -> bool:
                film.on_step()
                return True

            PolicyRun(env, policy).run(on_step)
