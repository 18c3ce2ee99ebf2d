"""Command `internutopia inspect`: the contents of a model file as a tree."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from internutopia.cli.command import guarded
from internutopia.config.asset_limits import AssetLimitsCfg
from internutopia.model.asset_bounds import limited_by
from internutopia.model.assets import resolve
from internutopia.model.description import (
    ActuatorFacts,
    BodyFacts,
    ColliderFacts,
    Description,
    JointFacts,
    describe,
)

_COLLIDERS_SHOWN = 8  # of a body; decomposed meshes have hundreds


def inspect(file: str, as_json: bool, time: float | None = None, memory: int | None = None) -> int:
    """Print the tree of a file, or JSON; returns the exit code. `time` [s], `memory` [bytes]: see `AssetLimitsCfg`."""
    return guarded('inspect', lambda: _inspect(file, as_json, time, memory))


def _inspect(file: str, as_json: bool, time: float | None, memory: int | None) -> int:
    with limited_by(AssetLimitsCfg(time=time, memory=memory)):
        description = describe(resolve(file))
    if as_json:
        print(json.dumps(dataclasses.asdict(description), indent=2))
        return 0
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # a file has room for whole lines
    console.print(_tree(description))
    actuators = [_actuator_text(actuator) for actuator in description.actuators]
    listed = {'actuators': actuators, 'constraints': description.constraints, 'dropped': description.dropped}
    for title, lines in listed.items():
        if lines:
            console.print(f'\n[bold]{title}[/]', *(f'- {escape(line)}' for line in lines), sep='\n')
    return 0


def _tree(description: Description) -> Tree:
    counts = f'{description.body_count} bodies, {description.joint_count} joints, {description.dof} degrees of freedom'
    tree = Tree(f'[bold]{escape(description.file)}[/]: {counts}, {description.mass:.6g} kg')
    _add_body(tree, description.world)
    return tree


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
