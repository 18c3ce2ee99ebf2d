"""Start checks: warnings about probable mistakes before an episode starts.

A scene of the wrong size, a robot above nothing, joints outside of their limits. Each is one warning per run and
process: of a scene with a scale, of a scene with a scale and a robot, of a robot's model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_paths import resolve
from internutopia.model.compiled import CompiledScene
from internutopia.model.importers.load import units_of
from internutopia.model.kinematics import joint_ranges, outside_limits
from internutopia.model.scene_bounds import SceneBounds
from internutopia.model.spec import NO_SCALE, SceneSpec
from internutopia.util import log
from internutopia.util.conventions import Conventions
from internutopia.util.log import warn_once

SMALLEST, LARGEST = 1.0, 1000.0
"""Horizontal extents [m] below and above which a scene probably has an unintended size."""
USUAL = 2.0, 200.0
"""Usual horizontal extents of scenes [m]."""
USUAL_TABLETOP = 0.1
"""Minimum horizontal extent [m] where a change undoes something, such as a unit that a file does not state."""
_KNOWN_STARTS = 4096  # starts of a scene that are remembered, to be checked once


class StartChecks:
    """Checks of the starts of episodes of one run.

    Args:
        conventions: conventions of the run.
    """

    def __init__(self, conventions: Conventions):
        self._conventions = conventions
        self._bounds: WeakKeyDictionary[CompiledScene, SceneBounds] = WeakKeyDictionary()
        self._known: WeakKeyDictionary[CompiledScene, set[Hashable]] = WeakKeyDictionary()
        self._hints: dict[Hashable, str] = {}  # hints about a scene's size, '' for none
        self._fallen: set[Hashable] = set()
        self._posed: set[Hashable] = set()  # robots whose joints were checked

    def check(self, task_index: int, model: SceneSpec, scene: CompiledScene) -> None:
        """Warn of probable mistakes in a task with this scene, once each."""
        self._check_joints(model, scene)
        if model.asset is None:
            return
        start = tuple((part.name, part.position, part.orientation) for part in (*model.robots, *model.objects))
        known = self._known.setdefault(scene, set())
        if start in known:
            return
        if len(known) < _KNOWN_STARTS:
            known.add(start)
        if scene not in self._bounds:
            self._bounds[scene] = SceneBounds(scene)
        bounds, asset = self._bounds[scene], (model.asset, model.scale, model.raw_lengths)
        if asset not in self._hints:
            self._hints[asset] = self._check_size(model, bounds)
        if bounds.has_ground or scene.model.opt.gravity[2] >= 0:
            return
        state = scene.initial_state(model)
        for robot in model.robots:
            qpos = scene.robots[robot.name].root.qpos
            if qpos < 0 or robot.weightless or (asset, robot.name) in self._fallen:
                continue
            nearest = bounds.nothing_below(robot.name, state)
            if nearest is None:
                continue
            self._fallen.add((asset, robot.name))
            where = ', '.join(f'{x:.3g}' for x in state['qpos'][qpos : qpos + 3])
            near = f'the nearest thing that collides is {nearest.geom!r}, {_metres(nearest.distance)} m away'
            log.warning(
                'task_configs[%d]: robot %r starts at (%s), env frame, with nothing below it, and will fall: %s; '
                '%s %s%s',
                *(task_index, robot.name, where, near if nearest.geom else 'nothing else collides', model.asset),
                *(_size(bounds.extent), self._hints[asset]),
            )

    def _check_joints(self, model: SceneSpec, scene: CompiledScene) -> None:
        """Warn of joints that start outside of their limits because the model sets no other start."""
        for robot in model.robots:
            key = robot.asset, robot.scale, tuple(robot.joint_positions)
            if key in self._posed or robot.starts_outside_limits:
                continue
            self._posed.add(key)
            layout = scene.robots[robot.name]
            start = scene.initial_state(model)['qpos'][layout.qpos]
            if faults := outside_limits(layout.dof_names, start, joint_ranges(scene.model, layout.joint_ids)):
                warn_once(
                    'robot %r: joints start outside of their limits, where %s has them, and will be pushed: %s; give '
                    'it initial_joint_positions, or starts_outside_limits=True if that is meant',
                    *(robot.name, robot.asset, faults),
                )

    def _check_size(self, model: SceneSpec, bounds: SceneBounds) -> str:
        """Warn of a scene that is too small or too large; returns a hint at the likely mistake."""
        extent, solid = _across(bounds.extent), _across(bounds.solid_extent)
        if extent is None or solid is None or (extent >= SMALLEST and solid <= LARGEST):
            return ''
        assert model.asset is not None
        file = resolve(model.asset)
        known = units_of(file)
        if known is not None and model.ignore_usd_defaults:
            known = known.without_defaults()
        unit = 1.0 if known is None else known.metres
        to_metres = 1.0 if model.raw_lengths else unit
        if solid <= LARGEST and all(math.isclose(scale * to_metres, 1.0) for scale in model.scale):
            return ''  # small as the file says in metres: the top of a table
        if known is None:
            applied = ''
        elif model.raw_lengths:
            applied = f'lengths as they are written ({self._conventions.label}, as a scale is given) and '
        elif known.states_metres:
            applied = f'its metersPerUnit = {unit:g} and '
        elif known.states_up:
            applied = f"USD's default of metersPerUnit = {unit:g} (the file says none) and "
        elif model.ignore_usd_defaults:
            label = self._conventions.label
            applied = f'lengths as they are written ({label}, as the file says no metersPerUnit and upAxis) and '
        else:
            applied = (
                f"USD's defaults of metersPerUnit = {unit:g} and upAxis = {known.up} (the file says neither, so it is "
                'turned by 90 degrees about x) and '
            )
        hint = self._likely(model, unit, extent if extent < SMALLEST else solid)
        log.warning(
            '%s %s, with %sscene_scale=%s%s',
            *(file, _size(bounds.extent), applied, _tuple(model.scale), hint),
        )
        return hint

    def _likely(self, model: SceneSpec, unit: float, extent: float) -> str:
        """Return the likeliest change by a power of ten that gives a scene a usual size; '' if there is none."""
        if unit <= 0:
            return ''  # USD takes any number
        written = extent / (1.0 if model.raw_lengths else unit)  # times the scale
        if model.ignore_usd_defaults and model.scale == NO_SCALE and USUAL_TABLETOP <= written <= USUAL[1]:
            return '; likely meant: metersPerUnit = 1 in the file'
        twice = -round(math.log10(unit))  # undoes a conversion that was done both by the file and by the scale
        back = -round(math.log10(model.scale[0]))  # to a scale of about 1

        def scaled(power: int) -> tuple[float, ...]:
            return tuple(float(f'{s * 10.0**power:.6g}') for s in model.scale)

        def across(power: int) -> float:
            raw = self._conventions.takes_raw_lengths(*scaled(power))
            return written * 10.0**power * (1.0 if raw else unit)

        power = likely_power(across, (twice, back))
        return '' if power is None else f'; likely meant: scene_scale={_tuple(scaled(power))}'


def likely_power(across: Callable[[int], float], undoing: Sequence[int]) -> int | None:
    """Return the likeliest power of ten that gives a scene a usual size; None if there is none.

    Args:
        across: horizontal extent [m] with a power.
        undoing: powers that undo something, the likeliest first.
    """
    for power in undoing:
        if power and USUAL_TABLETOP <= across(power) <= USUAL[1]:
            return power
    others = (2, -2, 3, -3, 1, -1, *(sign * k for k in range(4, 10) for sign in (1, -1)))
    return next((power for power in others if USUAL[0] <= across(power) <= USUAL[1]), None)


def _across(extent: NDArray[np.float64] | None) -> float | None:
    """Return the greater horizontal extent [m]."""
    return None if extent is None else float(extent[:2].max())


def _size(extent: NDArray[np.float64] | None) -> str:
    if extent is None:
        return 'has nothing finite in it'
    return f'is {_metres(extent[0])} x {_metres(extent[1])} m wide'


def _metres(length: float) -> str:
    return f'{length:.0f}' if length >= 100 else f'{length:.3g}'


def _tuple(scale: tuple[float, ...]) -> str:
    return f'({", ".join(f"{s:g}" for s in scale)})'
