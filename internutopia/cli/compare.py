"""Command `internutopia compare`: a robot, a run or a policy on several physics engines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from internutopia.cli.command import command
from internutopia.cli.options import (
    ENV_NUM,
    Device,
    Json,
    Seed,
    TaskId,
    TaskOptions,
    Trust,
    number_option,
    parse_key_values,
)
from internutopia.util.bounds import MAX_COUNT, MAX_ENVS
from internutopia.util.imports import install_hint

if TYPE_CHECKING:
    from rich.table import Table

    from internutopia.cli.run_file import RunFile
    from internutopia.comparison.episode_traces import EpisodeTrace
    from internutopia.comparison.trials import Trials
    from internutopia.config import Config
    from internutopia.model.spec import RobotSpec
    from internutopia.rl.training.engine import Engine
    from internutopia.rl.training.loading import Trained

_MODELS = ('.xml', '.mjcf', '.urdf', '.usd', '.usda', '.usdc', '.usdz')
_DIFFERS = 0.01  # of a value: properties that differ by less are equal
_JOINTS_SHOWN = 8
_SUBSTEP, _SUBSTEPS = '1/240', 4  # of a robot that is compared without a run

Figures = Mapping[str, Mapping[str, Any]]
"""Figures by engine, the reference first."""


@command('compare {source}')
def compare(
    source: Annotated[
        str,
        typer.Argument(
            help='Run file, robot (of `internutopia list robots`, or its model file), learning task, or policy.',
            metavar='CONFIG.yaml|ROBOT|ID|POLICY',
        ),
    ],
    backends: Annotated[
        str, typer.Option(help='Physics engines, separated by commas; the first one is the reference.')
    ] = 'mujoco,physx',
    env_id: TaskId = None,
    option: TaskOptions = None,
    trust: Trust = False,
    envs: Annotated[
        int, number_option(*ENV_NUM, min=1, max=MAX_ENVS, help='Number of envs of a policy, with one episode each.')
    ] = 16,
    steps: Annotated[int, number_option(min=1, max=MAX_COUNT, help='Maximum number of env steps of a run.')] = 1000,
    seed: Seed = 0,
    device: Device = None,
    out: Annotated[Path | None, typer.Option(help='Image file; default: out/<name>-compare.png.')] = None,
    as_json: Json = False,
) -> int:
    """Compare physics engines on a robot, a run or a policy."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f'an image needs matplotlib ({error}): {install_hint("cli")}') from error
    from internutopia.comparison.episode_traces import episode_figures
    from internutopia.comparison.plots import draw
    from internutopia.comparison.trials import run_trials

    with redirect_stdout(sys.stderr):  # libraries print there, such as Warp at its start
        engines = _engines(backends, device)
        options = parse_key_values(option or [], '--option')
        subject = _find_subject(source, env_id, options, trust, seed, next(iter(engines.values())))
        robots = {
            label: {
                name: run_trials(robot, engine.compute(subject.config).simulator) for name, engine in engines.items()
            }
            for label, robot in _distinct_robots(subject.config).items()
        }
        traces, episodes, policy = {}, {}, {}
        if subject.run is not None:
            traces = {name: _run(subject.run, engine, steps) for name, engine in engines.items()}
            reference = next(iter(traces.values()))
            episodes = {name: episode_figures(reference, each) for name, each in traces.items()}
        if subject.trained is not None:
            policy = {name: _evaluate(subject.trained, engine, envs, seed) for name, engine in engines.items()}
    file = out or Path('out') / f'{subject.name}-compare.png'
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(robots, traces).savefig(file)
    if as_json:
        print(json.dumps(_plain(robots, episodes, policy), indent=2))
        return 0
    _print(robots, episodes, policy, str(file))
    return 0


@dataclass(frozen=True)
class _Subject:
    """What is compared: the robots of a config, and the run or the policy that they belong to."""

    name: str
    config: Config
    run: RunFile | None = None
    trained: Trained | None = None


def _find_subject(
    source: str, env_id: str | None, options: Mapping[str, Any], trust: bool, seed: int, engine: Engine
) -> _Subject:
    """Return what a source names. ValueError or OSError if it is nothing that can be compared."""
    from internutopia.cli.run_file import read_run_file
    from internutopia.config.yaml_file import read_mapping
    from internutopia.core.robot.robot import BaseRobot
    from internutopia.rl.training.loading import load_trained
    from internutopia.rl.training.tasks import find_task

    path = Path(source)
    if source in BaseRobot.robots:
        return _Subject(source, _with_robot({'type': source}))
    if path.suffix in _MODELS:
        robot = {'type': 'GenericRobot', 'name': path.stem, 'usd_path': source}
        return _Subject(path.stem, _with_robot(robot))
    if path.suffix in ('.yaml', '.yml') and 'task_configs' in read_mapping(path):
        run = read_run_file(path, metrics_save_path='none', resume=False, episode_order='once', seed=seed)
        return _Subject(path.stem, run.config, run=run)
    if path.exists():
        trained = load_trained(path, env_id, engine, options, trust)
        return _Subject(path.stem, trained.config(1, seed), trained=trained)
    if '-v' not in source:
        raise FileNotFoundError(
            f'{source}: there is no such file, no such robot (internutopia list robots) and no such learning task '
            '(internutopia list tasks)'
        )
    task = find_task(source, options)
    return _Subject(task.name, task.config(1, seed))


def _with_robot(robot: Mapping[str, Any]) -> Config:
    from internutopia.config import Config, SimConfig, TaskCfg

    task = TaskCfg.model_validate({'type': 'SingleInferenceTask', 'robots': [robot]})
    return Config(simulator=SimConfig(physics_dt=_SUBSTEP, substeps=_SUBSTEPS), task_configs=[task])


def _engines(backends: str, device: str | None) -> dict[str, Engine]:
    """Return the engines of option `--backends`. ValueError for one that there is not, and for fewer than two."""
    from internutopia.rl.training.engine import choose_engine

    names = list(dict.fromkeys(name.strip() for name in backends.split(',') if name.strip()))
    if len(names) < 2:
        raise ValueError(f'--backends {backends}: name at least two engines, separated by commas')
    engines = {}
    for name in names:
        on = device if name == 'mujoco_warp' else None
        engine = choose_engine(name, on)
        assert engine is not None
        engines[name] = engine
    return engines


def _distinct_robots(config: Config) -> dict[str, RobotSpec]:
    """Return the robots of all tasks by name, each kind of robot once."""
    from internutopia.comparison.trials import placed
    from internutopia.core.task.scene_builder import scene_spec
    from internutopia.util.conventions import conventions_of

    conventions = conventions_of(config.compat)(config)
    found: dict[str, RobotSpec] = {}
    kinds: list[RobotSpec] = []
    for task in {id(task): task for task in config.task_configs}.values():
        for robot in conventions.scene(scene_spec(task)).robots:
            kind = replace(placed(robot), name='', prim_path='')
            if kind not in kinds:
                kinds.append(kind)
                found[robot.name if robot.name not in found else f'{robot.name} ({len(kinds)})'] = robot
    return found


def _run(run: RunFile, engine: Engine, steps: int) -> dict[int, EpisodeTrace]:
    """Return the traces of the episodes of a run on an engine."""
    from internutopia.cli.loop import run_episodes
    from internutopia.comparison.episode_traces import EpisodeTracer
    from internutopia.core.vec_env import Env

    tracer = EpisodeTracer()
    with closing(Env(engine.compute(run.config))) as env:
        env.watch(tracer.begin)
        run_episodes(
            env, run.actions, max_steps=steps, stopped=lambda: False, overview=None, on_step=lambda stats: None
        )
    return tracer.episodes


def _evaluate(trained: Trained, engine: Engine, envs: int, seed: int) -> dict[str, Any]:
    """Return the figures of a policy on an engine."""
    from internutopia.rl.training.evaluation import evaluate

    result = evaluate(trained.act, trained.config(envs, seed, engine=engine), seed=seed, arrays=trained.arrays)
    figures = asdict(result)
    tracking, gait = figures.pop('tracking') or {}, figures.pop('gait') or {}
    gait.pop('joint_ranges', None)
    contact = {f'contact of foot {foot}': share for foot, share in enumerate(gait.pop('contact', ()))}
    contact |= {f'contact of {part}': share for part, share in gait.pop('touching', {}).items()}
    standing = {
        f'{name}, {when}': figure
        for kind, when in (('still', 'standing'), ('still_pushed', 'standing after a push'))
        for name, figure in (figures.pop(kind) or {}).items()
    }
    return {'survived': result.survived, **figures.pop('metrics'), **figures, **tracking, **gait, **contact, **standing}


def _robot_figures(trials: Mapping[str, Trials]) -> Figures:
    """Return the figures of a robot by engine, with the differences from the first one."""
    from internutopia.comparison.trials import response_differences, swing_difference

    reference = next(iter(trials.values()))
    figures = {name: dict(each.figures) for name, each in trials.items()}
    for name, each in list(trials.items())[1:]:
        responses = response_differences(reference, each)
        if responses:
            figures[name]['drives: greatest difference of responses to a step [%]'] = max(responses.values())
        if 'swing' in each.traces:
            figures[name]['swing: greatest difference of a joint after 0.25 s [rad, m]'] = swing_difference(
                reference, each
            )
    return figures


def _differing(trials: Mapping[str, Trials]) -> Iterable[tuple[str, ...]]:
    """Yield properties of links and joints that differ between engines: name, property and values."""
    for kind in ('links', 'joints'):
        reference, *others = (getattr(each, kind) for each in trials.values())
        for part, properties in reference.items():
            for name, value in properties.items():
                values = [value, *(each[part][name] for each in others)]
                if not all(math.isclose(value, other, rel_tol=_DIFFERS, abs_tol=1e-6) for other in values):
                    yield part, name, *(f'{each:.4g}' for each in values)


def _plain(robots: Mapping[str, Mapping[str, Trials]], episodes: Figures, policy: Figures) -> Any:
    """Return all figures as plain data; NaN is None."""
    data = {
        'robots': {
            robot: {
                name: {
                    'figures': figures,
                    **{kind: getattr(trials[name], kind) for kind in ('links', 'joints', 'drives')},
                }
                for name, figures in _robot_figures(trials).items()
            }
            for robot, trials in robots.items()
        },
        'episodes': episodes,
        'policy': policy,
    }
    return _without_nan(data)


def _without_nan(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _without_nan(value) for name, value in data.items()}
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _print(robots: Mapping[str, Mapping[str, Trials]], episodes: Figures, policy: Figures, file: str) -> None:
    from rich.console import Console

    from internutopia.cli.report import make_table
    from internutopia.comparison.trials import EXPECTED

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 160  # a log has room for whole names
    for robot, trials in robots.items():
        tables = [_figure_table(robot, _robot_figures(trials), EXPECTED), _drive_table(trials)]
        differing = list(_differing(trials))
        if differing:
            tables.append(make_table('what differs by more than 1 %', '', numbers=trials))
            for row in differing:
                tables[-1].add_row(*row)
        for table in tables:
            if table.row_count:
                console.print(table, '')
        if not differing:
            console.print(f'{robot}: the same to 1 %: {_listed(next(iter(trials.values())))}\n')
    for title, figures in (('episodes', episodes), ('policy', policy)):
        if figures:
            console.print(_figure_table(title, figures, {}), '')
    console.print(file, soft_wrap=True)


def _listed(trials: Trials) -> str:
    """Return the names of the properties that were compared."""
    names = [
        f'{name.partition(" [")[0]} of {len(parts)} {kind}'
        for kind, parts in (('links', trials.links), ('joints', trials.joints))
        for name in next(iter(parts.values()), {})
    ]
    return ', '.join(names)


def _figure_table(title: str, figures: Figures, expected: Mapping[str, float]) -> Table:
    """Return a table of figures, one row each, with a column for each engine."""
    from internutopia.cli.report import make_table

    table = make_table(title, numbers=(*figures, *(['expected'] if expected else [])))
    for name in dict.fromkeys(name for each in figures.values() for name in each):
        table.add_row(
            name, *(_number(each.get(name)) for each in (*figures.values(), *([expected] if expected else [])))
        )
    return table


def _drive_table(trials: Mapping[str, Trials]) -> Table:
    """Return a table of the responses of the drives that differ most."""
    from internutopia.cli.report import make_table
    from internutopia.comparison.trials import response_differences

    reference, *others = trials.values()
    largest: dict[str, float] = {}
    for each in others:
        for joint, difference in response_differences(reference, each).items():
            largest[joint] = max(largest.get(joint, 0.0), difference)
    shown = sorted(largest, key=lambda joint: -largest[joint])[:_JOINTS_SHOWN]
    names = list(reference.drives[shown[0]]) if shown else []
    table = make_table(f'drive steps ({len(shown)} of {len(largest)} joints)', numbers=('difference [%]', *names))
    for joint in shown:
        figures = (' / '.join(_number(each.drives[joint][name]) for each in trials.values()) for name in names)
        table.add_row(joint, _number(largest[joint]), *figures)
    return table


def _number(value: Any) -> str:
    return '-' if value is None else f'{value:.4g}'
