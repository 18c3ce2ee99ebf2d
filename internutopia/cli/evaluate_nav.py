"""Commands about navigation: `internutopia evaluate nav`, `episodes` and `map`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
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
    Seed,
    Threads,
    number_option,
    resuming_command,
)
from internutopia.cli.policy_evaluation import PolicyEvaluation, described, figure, film_episode, listed
from internutopia.util import log
from internutopia.util.bounds import MAX_COUNT, MAX_SECONDS

if TYPE_CHECKING:
    from internutopia.evaluation.policy import Policy, StartFunction
    from internutopia.navigation.episodes import NavigationEpisode
    from internutopia.navigation.metrics import SceneSummary
    from internutopia_extension.configs.tasks import NavigationTaskCfg
    from internutopia_extension.navigation.setup import NavigationSetup

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
_FLASH_STEP = 0.25  # s that a step takes in a video of a robot that is teleported: 1 m/s


@command('evaluate {context.info_name} {source}')
def evaluate_nav(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            help='Episode file, also .json(.gz) of VLN-CE or Habitat; see docs/navigation.md.', metavar='EPISODES'
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            help='expert (uses the map), random, module:function, called with the task at the start of an episode, '
            'http://... (our protocol), ws://... (openpi), zmq://... (GR00T) or internnav://... (InternNav).'
        ),
    ] = 'expert',
    robot: Annotated[str, typer.Option(help='Robot: aliengo, g1, go2, gr1, h1, h1_with_hand or jetbot.')] = 'h1',
    scenes: Annotated[
        Path | None,
        typer.Option(help='Folder of the scenes that a file of VLN-CE or Habitat names.', metavar='FOLDER'),
    ] = None,
    moves: Annotated[
        Literal['flash', 'discrete'] | None,
        typer.Option(
            help='flash: teleport, default for discrete actions; discrete: walk or drive. Steps: 0.25 m, 15 degrees.'
        ),
    ] = None,
    asked: ClientOptions = ASKED,
    on_policy_error: Annotated[PolicyErrorRule | None, ON_POLICY_ERROR] = None,
    envs: Envs = 8,
    processes: Processes = None,
    success_distance: Annotated[
        float | None,
        number_option(min=0.0, max=MAX_COUNT, help='Success radius of the goals in m; default: of the episodes.'),
    ] = None,
    distance: Annotated[Literal['geodesic', 'euclidean'], typer.Option(help='Metric of the distance to a goal.')] = (
        'geodesic'
    ),
    sliding: Annotated[
        bool | None,
        typer.Option(
            '--sliding/--no-sliding',
            help='Slide along walls, or stop at them; default: stop with flash, slide with discrete.',
        ),
    ] = None,
    count_left_out: Annotated[
        bool, typer.Option('--count-left-out', help='Count episodes that are left out as failed.')
    ] = False,
    max_actions: Annotated[
        int,
        number_option(min=1, max=MAX_COUNT, help='Maximum number of actions, or periods, of an episode.'),
    ] = 500,
    stuck: Annotated[
        float | None,
        number_option(
            min=0.0, max=MAX_SECONDS, help='Seconds without motion after which a robot is stuck; default: never.'
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Folder for results.jsonl, report.json and images; default: out/<file name>.'),
    ] = None,
    video: Annotated[
        int,
        number_option(
            min=0, max=MAX_COUNT, help='Number of best, worst and failed episodes per scene to render as videos.'
        ),
    ] = 0,
    resume: Resume = False,
    overwrite: Overwrite = False,
    recording: RecordOptions = NOT_RECORDED,
) -> int:
    """Evaluate navigation on a file of episodes: success, SPL, nDTW and others, with confidence intervals."""
    from internutopia.evaluation.policy import FunctionPolicy
    from internutopia.navigation.metrics import summarize
    from internutopia_extension.navigation import evaluation
    from internutopia_extension.navigation.evaluation import counts_by_reason, episode_name
    from internutopia_extension.navigation.nav_mapping import NavMappingCfg
    from internutopia_extension.navigation.setup import NavigationSetup

    folder = out or Path('out') / source.stem
    evaluation_run = PolicyEvaluation(folder, resuming_command(context), recording, resume, processes)
    evaluation_run.check(overwrite, films=video > 0)
    mapping = NavMappingCfg() if asked.mapping is None else NavMappingCfg.read(asked.mapping)
    settings = {'agent': mapping.agent} if policy.startswith('internnav:') else {}
    client = asked.client(policy, mapping.batched, **settings)
    is_mapped = client is not None or asked.mapping is not None
    setup = NavigationSetup(robot, moves, sliding, mapping if is_mapped else None, asked.horizon, threads)
    chosen = FunctionPolicy(_policy(policy, seed)) if client is None else setup.policy(client)
    rule = on_policy_error or ('skip' if client is None else 'fail')
    evaluated = {'policy': asked.policy_name or policy, 'seed': seed}  # a part of what a result is of
    if is_mapped:
        evaluated |= {'mapping': mapping.model_dump(mode='json'), 'horizon': asked.horizon}
    conditions = {'episodes_file': str(source), 'robot': robot, 'moves': setup.moves, **evaluated}
    conditions |= {'allow_sliding': setup.slides, 'distance': distance}
    wrong: list[str] = []
    tasks, unreachable, unusable = evaluation.navigation_tasks(
        _read(source, scenes, wrong),
        setup.robot,
        success_distance=success_distance,
        distance=distance,
        stuck_seconds=stuck,
        evaluated=evaluated,
        **setup.limits(max_actions),
    )
    faults, without_way = [*wrong, *_described(unusable)], _described(unreachable)
    parts = [fault.partition(': ') for fault in wrong]
    unusable += [evaluation.not_run('', episode, evaluation.LEFT_OUT, reason) for episode, _, reason in parts]
    if not tasks:
        raise ValueError(f'{source}: no episode can be run{listed([*faults, *without_way])}')
    if client is not None:
        mapping.check_instructions(tasks, asked.place)
    total = len(tasks) + len(without_way) + len(faults)
    left_out = 'cannot be run and count as failed' if count_left_out else 'are left out'
    for some, fate in ((faults, left_out), (without_way, 'have no way to the goal and count as failed')):
        if some:
            log.warning('%s: %d of %d episodes %s%s', source, len(some), total, fate, listed(some))
    run, interruption = evaluation_run.run(
        tasks, setup.simulator, envs, chosen, episode_name, rule, evaluation.failed_metrics
    )
    measured = evaluation.read_results(evaluation_run.results)
    missing = len(tasks) - len(measured)
    reasons = {'left_out_by_reason': counts_by_reason(unusable), 'unreachable_by_reason': counts_by_reason(unreachable)}
    unknown = {'left_out': faults, **reasons, 'failed': run.failures, 'without_result': missing}
    counted = [*measured, *unreachable, *(unusable if count_left_out else [])]
    report = evaluation.report(counted, {**conditions, 'unreachable': without_way, **unknown})
    files = [evaluation_run.write_report(report)]
    if measured:
        title = f'{evaluated["policy"]}, {robot}, {setup.moves}: {source}'
        _print(summarize(counted), title, described(run.times) if is_mapped else [])
        if distance == 'geodesic':
            files += evaluation.draw_paths(tasks, measured, folder).values()
    print(*files, sep='\n')
    if video and not (interruption.is_set() or run.stopped):
        films = _film_episodes(tasks, measured, video, chosen, setup, folder)
        print(*(f'{file}: {episode}' for file, episode in films.items()), sep='\n')
    if client is not None:
        client.close()
    return evaluation_run.conclude(run, interruption, missing, len(tasks))


def _read(source: Path, scenes: Path | None, faults: list[str]) -> list[NavigationEpisode]:
    """Return the episodes of a file of any kind; `faults` receives what is wrong with which in a YAML file."""
    from internutopia.navigation.episodes import read_episodes
    from internutopia.navigation.habitat import read_episode_list, read_habitat
    from internutopia.navigation.vln_ce import read_vln_ce

    if source.suffix not in ('.json', '.gz'):
        return read_episodes(source, faults)
    items, _ = read_episode_list(source)
    has_words = any(isinstance(each, dict) and 'instruction' in each for each in items)
    episodes = (read_vln_ce if has_words else read_habitat)(source)
    return [each if scenes is None else each.update(scene=str(scenes / each.scene)) for each in episodes]


def _described(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why episodes are not run, one by one."""
    return [f'episode {each["episode"]!r} of {each["scene"]}: {each["reason"]}' for each in results]


def _policy(name: str, seed: int) -> StartFunction:
    """Return the policy of that name, or of a module. ValueError if there is none."""
    from internutopia.evaluation.policy import named_function
    from internutopia_extension.navigation.policies import Expert, random_policy

    if name in ('expert', 'random'):
        return Expert if name == 'expert' else random_policy(seed)
    if ':' not in name:
        raise ValueError(f"--policy: expected 'expert', 'random', module:function or a URL, got {name!r}")
    return named_function(name, '--policy')


def _print(summary: Mapping[str, SceneSummary], title: str, notes: Sequence[str]) -> None:
    """Print a row for each scene and one for all, with the confidence interval below each figure."""
    from internutopia.cli.report import print_figures
    from internutopia.navigation.metrics import ALL, RATES

    columns = {name: header for name, header in _COLUMNS.items() if name in summary[ALL].figures}
    names = list(summary) if len(summary) > 2 else [ALL]  # one scene is all
    rows = [
        (
            name if name == ALL else Path(name).name or '(not known)',
            str(summary[name].episodes),
            *(figure(summary[name].figures.get(column), column in RATES) for column in columns),
        )
        for name in names
    ]
    ends = ', '.join(f'{end} {count}' for end, count in summary[ALL].ends.items())
    note = f'ends: {ends}; 95 % intervals: Wilson for rates, bootstrap for means'
    print_figures(title, ['scene', 'episodes', *columns.values()], rows, [note, *notes])


def _film_episodes(
    tasks: Sequence[NavigationTaskCfg],
    results: Sequence[Mapping[str, Any]],
    count: int,
    policy: Policy,
    setup: NavigationSetup,
    folder: Path,
) -> dict[Path, str]:
    """Run chosen episodes of each scene again and film the robot.

    Args:
        tasks: the tasks.
        results: value of the `NavigationMetric` of each episode.
        count: number of the best, of the worst and of those that did not reach the goal.
        policy: policy that runs them.
        setup: of the evaluation; a step of a robot that is teleported takes a quarter of a second in the film.
        folder: folder of the films.

    Returns:
        The files, and the episode in each.
    """
    from internutopia_extension.navigation.evaluation import episode_name, notable

    films = {}
    step_dt = _FLASH_STEP if setup.moves == 'flash' else None
    known = {(task.episode.scene, task.episode.episode_id): task for task in tasks}
    for number, scene in enumerate(dict.fromkeys(scene for scene, _ in known)):
        best, worst, failed = notable(results, scene, count)
        for kind, chosen in (('best', best), ('worst', worst), ('failed', failed)):
            for place, result in enumerate(chosen, 1):
                file = folder / f'film_{number}_{Path(scene).stem}_{kind}_{place}.mp4'
                task = known[scene, result['episode']]
                film_episode(task, policy, episode_name, setup.simulator, file, step_dt)
                films[file] = f'episode {result["episode"]!r} of {scene}'
    return films


_Robot = Annotated[str, typer.Option(help='Built-in robot, such as h1 or jetbot.', metavar='NAME')]
_StepHeight = Annotated[
    float | None,
    typer.Option(help="Maximum step height in m; default: 5 % of the robot's height.", metavar='METRES'),
]


@command('episodes')
def sample_episodes(
    scenes: Annotated[list[str], typer.Argument(help='Scene files (USD, URDF, MJCF).', metavar='SCENE...')],
    robot: _Robot = 'h1',
    task: Annotated[
        Literal['pointnav', 'objectnav', 'vln'],
        typer.Option(help='Goals: positions, all objects of a category, or the end of an instruction in words.'),
    ] = 'pointnav',
    count: Annotated[int, number_option(min=1, max=MAX_COUNT, help='Number of episodes per scene.')] = 100,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help='Episode file to write.', metavar='FILE.yaml')] = Path('episodes.yaml'),
    distance: Annotated[
        tuple[float, float], typer.Option(help='Range of geodesic distances in m.', metavar='LOW HIGH')
    ] = (1.0, 30.0),
    ratio: Annotated[
        tuple[float, float],
        typer.Option(help='Range of the ratio of geodesic to Euclidean distance.', metavar='LOW HIGH'),
    ] = (1.0, 1000.0),
    category: Annotated[
        list[str] | None,
        typer.Option(help='Category of goal objects; repeatable; default: all but walls and floors.'),
    ] = None,
    success_distance: Annotated[
        float,
        number_option(min=0.01, max=MAX_COUNT, help='Success radius of the goals in m.'),
    ] = 0.36,
    step_height: _StepHeight = None,
) -> int:
    """Sample navigation episodes: pairs of a start and a goal that the robot can reach."""
    from internutopia import navigation
    from internutopia.navigation.episodes import write_episodes
    from internutopia_extension.navigation.robots import built_in_robot

    if category and task != 'objectnav':
        raise ValueError('--category applies to --task objectnav')
    ranges = navigation.Ranges(distance, ratio)
    agent = navigation.Agent.of(built_in_robot(robot), step_height)
    found: list[NavigationEpisode] = []
    for number, scene in enumerate(scenes, 1):
        if task == 'objectnav':
            new = navigation.sample_object_episodes(scene, agent, count, seed, ranges, category)
        elif task == 'vln':
            new = navigation.sample_instruction_episodes(scene, agent, count, seed, ranges)
        else:
            new = navigation.sample_point_episodes(scene, agent, count, seed, ranges)
        lengths = [episode.geodesic_distance or 0.0 for episode in new]
        summary = f'{len(new)} episodes, ways of {min(lengths):.3g} to {max(lengths):.3g} m'
        print(f'[{number}/{len(scenes)}] {scene}: {summary}', file=sys.stderr)
        for episode in new:
            goals = [goal.update(radius=success_distance) for goal in episode.goals]
            found.append(episode.update(goals=goals))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_episodes(out, found)
    print(out)
    return 0


@command('map')
def draw_map(
    scene: Annotated[str, typer.Argument(help='Scene file (USD, URDF, MJCF).', metavar='SCENE')],
    robot: _Robot = 'h1',
    out: Annotated[Path | None, typer.Option(help='Image file; default: out/<file name>_map.png.')] = None,
    step_height: _StepHeight = None,
) -> int:
    """Render the navigation map of a scene for a robot."""
    from internutopia.navigation import Agent, MapPicture, NavigationMap
    from internutopia_extension.navigation.robots import built_in_robot

    found = NavigationMap.of_scene(scene, Agent.of(built_in_robot(robot), step_height))
    file = out or Path('out') / f'{Path(scene).stem}_map.png'
    MapPicture(found).save(file)
    print(file)
    return 0
