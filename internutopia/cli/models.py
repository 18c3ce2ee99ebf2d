"""Commands about models, and `internutopia list`: names that configs can use, of all installed packages."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from internutopia.cli.command import command
from internutopia.cli.demo import demo_files
from internutopia.cli.options import Json
from internutopia.util.bounds import MAX_SIDE
from internutopia.util.imports import install_hint

if TYPE_CHECKING:
    from internutopia.asset_tools.description import (
        ActuatorFacts,
        BodyFacts,
        ColliderFacts,
        JointFacts,
    )
    from internutopia.config import Config

_COLLIDERS_SHOWN = 8  # of a body; decomposed meshes have hundreds


@command('inspect')
def inspect(
    file: Annotated[str, typer.Argument(help='Model file: USD, URDF or MJCF.', metavar='FILE')],
    as_json: Json = False,
    time: Annotated[
        float | None,
        typer.Option(help='Time limit in seconds; the file is read in a separate process.', metavar='SECONDS'),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(help='Memory limit in bytes; the file is read in a separate process.', metavar='BYTES'),
    ] = None,
) -> int:
    """Print the contents of a model file: bodies, joints, colliders, masses, cameras, unsupported features."""
    from internutopia.asset_tools.description import describe
    from internutopia.config.simulator import AssetLimitsCfg
    from internutopia.model.asset_files import limited_by
    from internutopia.model.asset_paths import resolve

    with limited_by(AssetLimitsCfg(time=time, memory=memory)):
        description = describe(resolve(file))
    if as_json:
        print(json.dumps(dataclasses.asdict(description), indent=2))
        return 0
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # a file has room for whole lines
    counts = f'{description.body_count} bodies, {description.joint_count} joints, {description.dof} degrees of freedom'
    tree = Tree(f'[bold]{escape(description.file)}[/]: {counts}, {description.mass:.6g} kg')
    _add_body(tree, description.world)
    console.print(tree)
    actuators = [_actuator_text(actuator) for actuator in description.actuators]
    listed = {'actuators': actuators, 'constraints': description.constraints, 'dropped': description.dropped}
    for title, lines in listed.items():
        if lines:
            console.print(f'\n[bold]{title}[/]', *(f'- {escape(line)}' for line in lines), sep='\n')
    return 0


def _add_body(parent: Tree, body: BodyFacts) -> None:
    mass = f' {body.mass:.6g} kg' if body.mass else ''
    place = f' at ({", ".join(f"{value:.4g}" for value in body.position)}) m' if any(body.position) else ''
    node = parent.add(f'[bold cyan]{escape(body.name)}[/]{mass}{place}{" (kinematic)" if body.kinematic else ""}')
    for joint in body.joints:
        node.add(f'[yellow]joint[/] {_joint_text(joint)}')
    for collider in body.colliders[:_COLLIDERS_SHOWN]:
        node.add(f'[green]collider[/] {_collider_text(collider)}')
    rest = Counter(collider.shape for collider in body.colliders[_COLLIDERS_SHOWN:])
    if rest:
        node.add(f'[green]and[/] {", ".join(f"{count} more of shape {shape}" for shape, count in rest.items())}')
    if body.visuals:
        node.add(f'[dim]{body.visuals} visual geom{"s" * (body.visuals > 1)}[/]')
    for camera in body.cameras:
        node.add(f'[magenta]camera[/] {escape(camera)}')
    for child in body.bodies:
        _add_body(node, child)


def _joint_text(joint: JointFacts) -> str:
    turns = joint.type != 'prismatic'
    unit, force = ('rad', 'N·m') if turns else ('m', 'N')
    parts = [f'{escape(joint.name)}: {joint.type}']
    if joint.axis is not None:
        parts.append(f'axis ({", ".join(f"{value:g}" for value in joint.axis)})')
    if joint.limits is not None:
        low, high = joint.limits
        degrees = f' = {math.degrees(low):.4g}..{math.degrees(high):.4g}°' if turns else ''
        parts.append(f'{low:.4g}..{high:.4g} {unit}{degrees}')
    if joint.stiffness or joint.damping:
        parts.append(f'drive {joint.stiffness:g} {force}/{unit}, {joint.damping:g} {force}·s/{unit}')
    if joint.max_force is not None:
        parts.append(f'at most {joint.max_force:g} {force}')
    for value, name in ((joint.passive_damping, 'damping'), (joint.armature, 'armature'), (joint.friction, 'friction')):
        if value:
            parts.append(f'{name} {value:g}')
    return ', '.join(parts)


def _actuator_text(actuator: ActuatorFacts) -> str:
    parts = [f'{actuator.name}: {actuator.control} of {actuator.drives}']
    parts += [f'gear {actuator.gear:g}'] if actuator.gear != 1.0 else []
    for limits, name in ((actuator.control_range, 'control'), (actuator.force_range, 'force')):
        if limits is not None:
            parts.append(f'{name} {limits[0]:.4g}..{limits[1]:.4g}')
    return ', '.join(parts)


def _collider_text(collider: ColliderFacts) -> str:
    size = ' x '.join(f'{value:.4g}' for value in collider.size)
    shape = f'{collider.shape} {size} m' if size else collider.shape
    hidden = '' if collider.visible else ', hidden'
    return f'{escape(collider.name)} {shape}, friction {collider.friction:g}{hidden}'.strip()


@command('show {source}')
def show(
    source: Annotated[str, typer.Argument(help='Scene or robot file (USD, URDF, MJCF), or run file.', metavar='SCENE')],
    out: Annotated[Path | None, typer.Option(help='Image file; default: out/<file name>.png.')] = None,
    size: Annotated[
        tuple[int, int], typer.Option(min=1, max=MAX_SIDE, help='Width and height in pixels.', metavar='WIDTH HEIGHT')
    ] = (1280, 960),
) -> int:
    """Render a scene, a robot, or the envs of a run at its start."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f'an image needs pillow ({error}): {install_hint("cli")}') from error
    from internutopia.cli.run_file import read_run_file
    from internutopia.core.vec_env import Env

    is_run = Path(source).suffix in ('.yaml', '.yml')
    env = Env(read_run_file(source).config if is_run else _alone(source))
    try:
        env.reset()
        picture = env.render(None, size)
    finally:
        env.close()
    file = out or Path('out') / f'{Path(source).stem}.png'
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(file)
    print(file)
    return 0


def _alone(scene: str) -> Config:
    """Return the config of a run with nothing but a scene."""
    from internutopia.config import Config, SimConfig, TaskCfg

    task = TaskCfg(type='SingleInferenceTask', scene_asset_path=scene)
    return Config(simulator=SimConfig(render_quality='full'), task_configs=[task], metrics_save_path='none')


Kind = Literal[
    'robots', 'scenes', 'controllers', 'sensors', 'objects', 'task-types', 'metrics', 'rewards', 'tasks', 'terms',
    'demos', 'suites',
]  # fmt: skip


@command('list')
def list_names(
    kind: Annotated[Kind, typer.Argument(help='Kind of names to list.', metavar='KIND')],
    name: Annotated[
        str | None, typer.Argument(help='For the kind terms: a term, to print its parameters.', metavar='NAME')
    ] = None,
) -> int:
    """List the names that configs can use: robots, scenes, controllers, learning tasks, their terms, demos, ..."""
    if name is not None:
        if kind != 'terms':
            raise ValueError(f'only terms have parameters, not {kind}: `internutopia list terms {name}`')
        return _show_terms(name)
    names = _names(kind)
    width = max(map(len, names), default=0)
    for name in sorted(names):
        print(f'{name:{width}}  {names[name]}'.rstrip())
    return 0


def _show_terms(name: str) -> int:
    """Print docstrings, which have units, and parameters of the terms with this name."""
    from internutopia.rl.terms.registry import KINDS, registered_terms
    from internutopia.util import did_you_mean

    found = [(kind, terms[name]) for kind in KINDS if name in (terms := registered_terms(kind))]
    if not found:
        known = {each for kind in KINDS for each in registered_terms(kind)}
        raise ValueError(f'there is no term {name!r}; {did_you_mean(name, known)}')
    for kind, function in found:
        print(f'{kind} {name}: {cleandoc(function.__doc__ or "")}')
        for parameter in signature(function).parameters.values():
            if parameter.name not in ('state', 'env_ids'):
                print(f'  {parameter}'.replace("'", ''))  # annotations are text
    return 0


def _names(kind: Kind) -> dict[str, str]:
    """Return the names of a kind with their descriptions, '' for names without one."""
    import gymnasium

    from internutopia.asset_tools.listing import list_assets
    from internutopia.core.registries import REGISTRIES
    from internutopia.rl import list_tasks
    from internutopia.rl.terms.registry import KINDS, registered_terms

    match kind:
        case 'demos':  # the first line of the file is a comment
            return {name: file.read_text().partition('\n')[0].removeprefix('# ') for name, file in demo_files().items()}
        case 'scenes':
            assets = list_assets()
            readme = (Path(assets.builtin_folder) / 'scenes' / 'README.md').read_text()
            meanings = dict(re.findall(r'^- `(.+?)`: (.+?)(?:[.;]\s| \()', readme, re.MULTILINE | re.DOTALL))
            texts = {name: meanings.get(Path(name).name, 'built in') for name in assets.builtin_scenes}
            builtin = {name: ' '.join(text.split()) for name, text in texts.items()}
            return {**builtin, **dict.fromkeys(assets.scenes, assets.folder)}
        case 'tasks':
            return {env_id: _task_summary(**gymnasium.registry[env_id].kwargs) for env_id in list_tasks()}
        case 'suites':  # with their tasks
            from internutopia.evaluation.suites import suites

            return {name: ', '.join(make().tasks) for name, make in suites().items()}
        case 'terms':
            return {f'{kind} {name}': _summary(term) for kind in KINDS for name, term in registered_terms(kind).items()}
        case _:
            return {
                name: _summary(cls) for name, cls in REGISTRIES['task' if kind == 'task-types' else kind[:-1]].items()
            }


def _task_summary(task: str, **options: Any) -> str:
    """Return the first line of a task module's docstring, with the options that tell its ids apart."""
    given = [f'{name}={value}' for name, value in options.items() if isinstance(value, str | int | float)]
    return f'{_summary(import_module(task))} ({", ".join([task, *given])})'


def _summary(thing: Any) -> str:
    """Return the first line of its own docstring, not of an inherited one."""
    return cleandoc(thing.__doc__ or '').partition('\n')[0]
