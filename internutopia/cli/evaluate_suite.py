"""Command `internutopia evaluate suite`: a policy from anywhere on a suite of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from internutopia.cli.command import command
from internutopia.cli.options import (
    ASKED,
    NOT_RECORDED,
    ON_POLICY_ERROR,
    ClientOptions,
    Envs,
    Overwrite,
    PolicyErrorRule,
    Processes,
    RecordOptions,
    Resume,
    Threads,
    number_option,
    resuming_command,
)
from internutopia.cli.policy_evaluation import PolicyEvaluation, described, figure, film_episode
from internutopia.util.bounds import MAX_COUNT

if TYPE_CHECKING:
    from internutopia.config import SimConfig, TaskCfg
    from internutopia.evaluation.chunk_policy import Client
    from internutopia.evaluation.policy import Policy
    from internutopia.evaluation.policy_run import RunTimes
    from internutopia.evaluation.suite_report import SuiteRow
    from internutopia.evaluation.suites import Suite

_ENDS = {'steps': 'out of steps', 'policy': 'policy failed', 'error': 'simulation failed'}


@command('evaluate {context.info_name} {name}')
def evaluate_suite(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help='Suite, see `internutopia list suites`.', metavar='SUITE')],
    policy: Annotated[
        str,
        typer.Option(
            help='http://... (our protocol), ws://... (openpi), zmq://... (GR00T), lerobot:PATH, module:function, '
            'expert or random.'
        ),
    ],
    tasks: Annotated[
        str | None, typer.Option(help='Tasks, separated by commas; default: all.', metavar='NAME[,NAME]')
    ] = None,
    perturbations: Annotated[
        str, typer.Option(help="Axes of perturbation, separated by commas, or 'all'.", metavar='NAME[,NAME]')
    ] = 'none',
    episodes: Annotated[
        int | None, number_option(min=1, max=MAX_COUNT, help='Episodes of each task and axis; default: all.')
    ] = None,
    first: Annotated[
        int,
        number_option(
            min=0,
            max=MAX_COUNT,
            help='Number of the first episode; numbers beyond those of the suite are for training.',
        ),
    ] = 0,
    envs: Envs = 16,
    processes: Processes = None,
    asked: ClientOptions = ASKED,
    ensemble: Annotated[
        float | None,
        number_option(min=0.0, max=MAX_COUNT, help='Coefficient of temporal ensembling, such as 0.01; default: off.'),
    ] = None,
    on_policy_error: Annotated[PolicyErrorRule, ON_POLICY_ERROR] = 'fail',
    render_quality: Annotated[
        Literal['plain', 'fast', 'full'],
        typer.Option(help='Quality of the images: plain takes a sixth to a third of the time of fast.'),
    ] = 'fast',
    threads: Threads = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Folder for results.jsonl, report.json and videos; default: out/<suite>.'),
    ] = None,
    video: Annotated[
        int,
        number_option(min=0, max=MAX_COUNT, help='Number of failed episodes per task and axis to render as videos.'),
    ] = 0,
    resume: Resume = False,
    overwrite: Overwrite = False,
    recording: RecordOptions = NOT_RECORDED,
) -> int:
    """Evaluate a policy on a suite of tasks: success rates with confidence intervals, by task and perturbation."""
    from internutopia.evaluation.arm_mapper import ArmForm, ArmMapper
    from internutopia.evaluation.mapping import MappingCfg
    from internutopia.evaluation.suite_report import read_results, report, summarize
    from internutopia.evaluation.suites import episode_name, failed_metrics, find_suite

    suite = find_suite(name)
    folder = out or Path('out') / suite.name.rpartition('/')[2].lower()
    evaluation = PolicyEvaluation(folder, resuming_command(context), recording, resume, processes)
    evaluation.check(overwrite, films=video > 0)
    mapping, horizon = asked.mapping, asked.horizon
    mapped = MappingCfg() if mapping is None else MappingCfg.read(mapping)
    mapper = ArmMapper(mapped, suite.arm)
    mapped.check_cameras(suite, asked.place)
    client = asked.client(policy, mapped.batched)
    try:
        if horizon is None and ensemble is None:
            horizon = getattr(client, 'horizon', None)
        unseen = suite.arm.chunk_controller if recording.record is None else None
        chosen = _policy(policy, suite, client, mapper, horizon, ensemble, unseen)
        axes = suite.perturbations if perturbations == 'all' else _names(perturbations)
        shown = client is not None or mapping is not None or recording.record is not None
        cameras = mapper.cameras if shown else {}
        configs = suite.task_configs(None if tasks is None else _names(tasks), axes, episodes, cameras, first)
        evaluated = {
            'policy': asked.policy_name or policy,
            'mapping': mapped.model_dump(mode='json'),
            'horizon': horizon,
            'ensemble': ensemble,
            'render_quality': render_quality,
        }
        mapped.check_objects(suite, configs, asked.place)
        configs = [config.update(evaluated=evaluated) for config in configs]  # a part of what a result is of
        simulator = suite.simulator(threads).update(render_quality=render_quality)
        form = None if mapping is None else ArmForm(suite.arm, mapped)
        run, interruption = evaluation.run(
            configs, simulator, envs, chosen, episode_name, on_policy_error, failed_metrics, form
        )
        measured = read_results(evaluation.results, configs)
        missing = len(configs) - len(measured)
        unknown = {'failed': run.failures, 'without_result': missing, 'stopped': run.stopped}
        unknown['targets_out_of_reach'] = mapper.out_of_reach
        conditions = {'suite': suite.name, **evaluated, **unknown}
        written = evaluation.write_report(report(measured, conditions, run.times))
        if measured:
            _print(summarize(measured), f'{suite.name}: {evaluated["policy"]}', run.times)
        if mapper.out_of_reach:
            print(
                f'{mapper.out_of_reach} targets of {run.times.steps} are more than {suite.arm.reach} m from the base '
                'of the arm: do mode, frame, scale and order of the mapping fit the policy?'
            )
        print(written)
        if video and not (interruption.is_set() or run.stopped):
            _film(configs, measured, video, chosen, simulator, folder)
    finally:
        if client is not None:
            client.close()
    return evaluation.conclude(run, interruption, missing, len(configs))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(',')]


def _policy(text: str, suite: Suite, client: Client | None, mapper: Any, *options: Any) -> Policy:
    """Return the policy of an option."""
    from internutopia.evaluation.chunk_policy import ChunkPolicy
    from internutopia.evaluation.policy import FunctionPolicy, named_function
    from internutopia.evaluation.suites import random_policy

    if client is not None:
        return ChunkPolicy(client, mapper, *options)
    if text in ('expert', 'random'):
        return FunctionPolicy(suite.expert if text == 'expert' else random_policy(suite.arm))
    if ':' not in text:
        raise ValueError(f"--policy: expected 'expert', 'random', module:function, lerobot:PATH or a URL, got {text!r}")
    return FunctionPolicy(named_function(text, '--policy'))


def _print(rows: Sequence[SuiteRow], title: str, times: RunTimes) -> None:
    """Print a row for each task and perturbation, with the confidence interval below each figure."""
    from internutopia.cli.report import print_figures

    ends = {end: label for end, label in _ENDS.items() if any(end in row.ends for row in rows)}
    columns = ['task', 'perturbation', 'episodes', 'success', 'steps', *ends.values()]
    lines = [
        (
            row.task,
            row.perturbation,
            str(row.episodes),
            figure(row.success, is_rate=True),
            figure(row.steps, is_rate=False),
            *(str(row.ends.get(end, 0)) for end in ends),
        )
        for row in rows
    ]
    notes = ['95 % intervals: Wilson for success, bootstrap for the steps of episodes that succeeded']
    notes += described(times)
    print_figures(title, columns, lines, notes, names=2)


def _film(
    tasks: Sequence[TaskCfg],
    results: Sequence[dict[str, Any]],
    count: int,
    policy: Policy,
    simulator: SimConfig,
    folder: Path,
) -> None:
    """Run the first failed episodes of each task and perturbation again, and film them."""
    from internutopia.evaluation.suites import episode_name

    known = {(task.suite_task, task.perturbation, task.number): task for task in tasks}  # pyright: ignore[reportAttributeAccessIssue]
    filmed: dict[tuple[str, str], int] = {}
    for result in results:
        group = result['task'], result['perturbation']
        if result['end'] != 'steps' or filmed.get(group, 0) == count:
            continue
        filmed[group] = filmed.get(group, 0) + 1
        file = folder / f'film_{"_".join(group)}_{result["number"]}.mp4'
        task = known[*group, result['number']]
        film_episode(task, policy, episode_name, simulator, file)
        print(f'{file}: {episode_name(task)}')
