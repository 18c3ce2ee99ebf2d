"""Command `internutopia evaluate nav`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from internutopia.cli.command import guarded
from internutopia.cli.nav_films import check_films, film_episodes
from internutopia.cli.recording import RecordOptions
from internutopia.config import Config
from internutopia.config.distribution import RayDistributionCfg
from internutopia.core.vec_env import Env
from internutopia.navigation.episodes import read_episodes
from internutopia.navigation.summary import ALL, RATES, Estimate, SceneSummary, summarize
from internutopia.util import log
from internutopia.util.interrupts import InterruptedByUser, interrupts
from internutopia.util.named_module import import_named

if TYPE_CHECKING:
    from internutopia_extension.navigation.policies import Policy
    from internutopia_extension.navigation.robots import Moves

_PATIENCE = 2.0  # s that a step, or the start of episodes, may go on after a signal
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


def evaluate_nav(
    source: Path,
    *,
    policy: str,
    robot: str,
    moves: Moves,
    envs: int,
    processes: int | None,
    success_distance: float | None,
    distance: Literal['geodesic', 'euclidean'],
    max_actions: int,
    stuck: float | None,
    seed: int,
    threads: int | None,
    out: Path,
    video: int,
    resume: bool,
    overwrite: bool,
    record: RecordOptions,
    again: str,
) -> int:
    """Evaluate a policy on a file of episodes; returns the exit code.

    Args:
        source: YAML file of episodes.
        policy: `'expert'`, `'random'`, or `module:function`.
        robot: name of a robot, see `navigation_robot`.
        moves: execution of discrete actions.
        envs: number of envs; per process.
        processes: number of worker processes; None means this process alone.
        success_distance: distance to the goal that counts as reached [m]; None means that of the episodes.
        distance: metric of distances to the goal.
        max_actions: number of actions at which an episode ends.
        stuck: time without moving or turning after which a robot is stuck [s]; None means never.
        seed: of random actions.
        threads: threads of the physics engine; None means one per core.
        out: folder for results, report and pictures of paths.
        video: number of the best, the worst and the failed episodes of each scene that are filmed.
        resume: leave out the episodes that have a result.
        overwrite: replace earlier results.
        record: the dataset to record.
        again: the command that goes on with the evaluation.
    """

    def start() -> int:
        from internutopia_extension.navigation import evaluation, pictures, robots
        from internutopia_extension.navigation.policy_run import PolicyRun

        record.check()
        if resume and overwrite:
            raise ValueError('go on with an evaluation (--resume) or replace its results (--overwrite), not both')
        if video:
            check_films()
        chosen = _policy(policy, seed)
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
        all_in_all = len(tasks) + len(without_way) + len(faults)
        for said, fate in ((faults, 'are left out'), (without_way, 'have no way to the goal and count as failed')):
            if said:
                log.warning('%s: %d of %d episodes %s%s', source, len(said), all_in_all, fate, _listed(said))
        out.mkdir(parents=True, exist_ok=True)
        results = out / 'results.jsonl'
        if not (resume or overwrite) and results.is_file() and results.stat().st_size:
            raise ValueError(
                f'{results} holds the results of an earlier evaluation: go on with it with --resume, replace them '
                'with --overwrite, or use another --out'
            )
        config = Config(
            simulator=robots.simulation(moves, threads),
            env_num=min(envs, len(tasks)),
            task_configs=[*tasks],
            metrics_save_path=str(results),
            resume=resume,
        )
        if processes is not None:
            config = config.distribute(RayDistributionCfg(proc_num=processes))
        recorder = record.recorder(config)
        with interrupts() as interruption, closing(Env(config)) as env:
            if not resume:
                env.results.start_over()
            run = PolicyRun(env, chosen)
            with _telling(again), record.attached(env, recorder), interruption.deferred(_PATIENCE):
                run.run(lambda ended: not interruption.is_set())
        measured = evaluation.read_results(results)
        missing = len(tasks) - len(measured)
        unknown = {'left_out': faults, 'failed': run.failures, 'without_result': missing}
        counted = [*measured, *unreachable]
        report = evaluation.report(counted, {**conditions, 'unreachable': without_way, **unknown})
        (out / 'report.json').write_text(json.dumps(report, indent=2) + '\n')
        files = [out / 'report.json']
        if measured:
            _print(summarize(counted), f'{policy}, {robot}, {moves}: {source}')
            if distance == 'geodesic':
                files += pictures.draw_paths(tasks, measured, out).values()
        print(*files, sep='\n')
        if video and not interruption.is_set():
            simulator = robots.simulation(moves, threads)
            films = film_episodes(tasks, measured, video, chosen, simulator, moves == 'flash', out)
            print(*(f'{file}: {episode}' for file, episode in films.items()), sep='\n')
        if run.failures:
            print(f'the policy failed in {len(run.failures)} episodes{_listed(run.failures)}', file=sys.stderr)
        if missing:
            print(f'{missing} of {len(tasks)} episodes have no result; go on with: {again}')
        return interruption.exit_code or int(bool(missing))

    return guarded(f'evaluate nav {source}', start)


def _listed(faults: Sequence[str]) -> str:
    """Format the first of some faults, and the number of the others."""
    more = f'\n  and {len(faults) - _SHOWN} more' if len(faults) > _SHOWN else ''
    return ''.join(f'\n  {fault}' for fault in faults[:_SHOWN]) + more


@contextmanager
def _telling(again: str) -> Iterator[None]:
    """Print the command that resumes the evaluation if the context is left by an interruption."""
    try:
        yield
    except InterruptedByUser:
        print(f'stopped before the end; go on with: {again}', flush=True)
        raise


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
