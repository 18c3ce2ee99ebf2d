"""`isaacsim.core.api.objects` and `.materials`: shapes that are added to an env that runs, until its episode ends.

There are 15 classes: `Visual...`, which nothing touches, `Fixed...`, which stand still, and `Dynamic...`, which physics
moves, of a `...Cuboid`, `...Sphere`, `...Cylinder`, `...Capsule` and `...Cone`; and a `GroundPlane`. Of
materials, color and dynamic friction are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from internutopia.compat.numbers import checked_numbers, checks_arguments
from internutopia.compat.omni.adding import as_tuple, path_below, place_in_env
from internutopia.compat.omni.handles import Ready, SingleGeometryPrim, friction_of
from internutopia.core.scene.scene import IScene
from internutopia.model.spec import IDENTITY_QUAT, ObjectSpec
from internutopia.util import did_you_mean

MATERIALS = ('OmniGlass', 'OmniPBR', 'PhysicsMaterial', 'PreviewSurface', 'VisualMaterial')
"""Names of `isaacsim.core.api.materials`."""

_MASS = 0.02  # of what moves and has none given [kg], as in Isaac Sim
_SHAPES: dict[str, tuple[str, dict[str, float], Callable[..., Any]]] = {
    # by name: shape, dimensions and what they are if they are not given [m], edge lengths of the box around it
    'Cuboid': ('box', {'size': 1.0}, lambda size: 3 * (size,)),
    'Sphere': ('ellipsoid', {'radius': 1.0}, lambda radius: 3 * (2 * radius,)),
    'Cylinder': ('cylinder', {'radius': 1.0, 'height': 1.0}, lambda radius, height: (2 * radius, 2 * radius, height)),
    'Capsule': (
        'capsule',
        {'radius': 0.5, 'height': 1.0},  # without the half spheres at its ends
        lambda radius, height: (2 * radius, 2 * radius, height + 2 * radius),
    ),
    'Cone': ('cone', {'radius': 1.0, 'height': 1.0}, lambda radius, height: (2 * radius, 2 * radius, height)),
}
_KINDS = {'Visual': (False, False), 'Fixed': (False, True), 'Dynamic': (True, True)}  # moves, collides


class Shape(SingleGeometryPrim):
    """A shape that is added to an env until its episode ends.

    Args:
        prim_path: where it is put, in an env that runs: `/World/env_<id>/...`.
        name: its name, by which `IScene.get` finds it.
        position: world frame [m]; where the class of an object adds it, env frame, as that of its config.
        translation: the same in the env frame.
        orientation: `(w, x, y, z)`.
        scale: factors of its dimensions along x, y, z.
        visible: accepted.
        color: red, green, blue, 0 to 1.
        visual_material: gives it its color, if there is no `color`.
        physics_material: gives it its dynamic friction, which counts whatever it touches.
        mass: [kg], of what moves; without a density, 0.02 if not given.
        density: [kg/m3].
        linear_velocity: [m/s], of what moves.
        angular_velocity: [rad/s], of what moves.
        **dimensions: `size` of a cuboid, 1 if not given; `radius` of the others, 1 (capsule: 0.5); `height` of
            cylinder, cone and (without its ends) capsule, 1 [m].

    Raises:
        KeyError: the path is in no env that runs.
        TypeError: the shape has no such dimension.
        ValueError: the name or the path is taken, or a dimension is not positive; or the scale of a cylinder or
            capsule differs between x and y.
    """

    shape: ClassVar[str]
    _physics: ClassVar[tuple[bool, bool]]

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str | None = None,
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        color: Any = None,
        *,
        visual_material: Any = None,
        physics_material: Any = None,
        mass: float | None = None,
        density: float | None = None,
        linear_velocity: Any = None,
        angular_velocity: Any = None,
        **dimensions: float | None,
    ):
        kind, defaults, edges_of = _SHAPES[self.shape]
        for each in dimensions:
            if each not in defaults:
                hint = did_you_mean(each, defaults)
                raise TypeError(f'{type(self).__name__}: unexpected argument {each!r}; {hint}')
        self._dimensions = defaults | {each: value for each, value in dimensions.items() if value is not None}
        self._scale = np.ones(3) if scale is None else scale
        dynamic, collider = self._physics
        name = name or self._default_name
        spec = ObjectSpec(
            name,
            shape=kind,  # pyright: ignore[reportArgumentType]
            scale=as_tuple(edges_of(**self._dimensions) * self._scale),
            position=place_in_env(prim_path, position, translation),
            orientation=IDENTITY_QUAT if orientation is None else orientation,
            mass=_MASS if dynamic and mass is None and density is None else mass,
            density=density,
            dynamic=dynamic,
            collider=collider,
        )
        _add(spec, prim_path, color, visual_material, physics_material)
        super().__init__(prim_path, name)
        if linear_velocity is not None:
            self._body.set_linear_velocity(linear_velocity)
        if angular_velocity is not None:
            self._body.set_angular_velocity(angular_velocity)

    @property
    @override
    def _body(self) -> Any:
        """Its body. RuntimeError if it was removed from an env that still runs."""
        try:
            there = self.prim_path in IScene.at(self.prim_path).object_paths
        except KeyError:  # the episode has ended
            there = True
        if not there:
            raise RuntimeError(f'{self.prim_path}: {self.name!r} was removed')
        return self._found

    @override
    def get_local_scale(self) -> Any:
        return self._scale.copy()

    get_world_scale = get_local_scale


class GroundPlane(Ready):
    """A horizontal plane without end that things stand on, added to envs until their episodes end.

    Args:
        prim_path: where it is put: in an env that runs; another path stands for one in each of them that has none of
            that name.
        name: its name.
        size: accepted: it has no end.
        z_position: its height [m].
        scale: accepted.
        visible: accepted.
        color: red, green, blue, 0 to 1.
        physics_material: gives it its dynamic friction, which counts whatever touches it.
        visual_material: gives it its color, if there is no `color`.
    """

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str = 'ground_plane',
        size: float | None = None,
        z_position: float | None = None,
        scale: Any = None,
        visible: bool | None = None,
        color: Any = None,
        physics_material: Any = None,
        visual_material: Any = None,
    ):
        self.name, self.prim_path = name, prim_path = name or 'ground_plane', prim_path
        below = re.sub(r'^/World(/env_\d+)?', '', prim_path)
        shared = re.match(r'/World/env_\d+/', prim_path) is None
        scenes = IScene.all() if shared else [IScene.at(prim_path)]
        if not scenes:
            raise KeyError(f'{prim_path!r}: no env runs')
        spec = ObjectSpec(name, shape='plane', position=(0.0, 0.0, z_position or 0.0), dynamic=False)
        for scene in scenes:
            if not (shared and scene.object_exists(name)):
                _add(spec, f'{scene.root_path}{below}', color, visual_material, physics_material)
        self._bodies = [scene.get(name) for scene in scenes]

    def get_world_pose(self) -> tuple[Any, Any]:
        """Return position `(3,)` [m] and orientation `(4,)` in the world."""
        return self._bodies[0].get_world_pose()

    def set_world_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move it; None leaves one as it is."""
        for body in self._bodies:
            body.set_world_pose(position, orientation)


def _getter(dimension: str) -> Callable[[Shape], float]:
    def get(self: Shape) -> float:
        return self._dimensions[dimension]

    get.__doc__ = f'Return its {dimension} [m], without its scale.'
    return get


def _refuse(self: Shape, value: float) -> None:
    """Raise a NotImplementedError: a shape keeps its dimensions."""
    raise NotImplementedError(
        f'{self.prim_path}: the dimensions of a shape cannot change: remove it and add another one'
    )


for _shape, (_, _dimensions, _edges) in _SHAPES.items():
    _base: type[Any] = Shape
    _calls: dict[str, Any] = {f'get_{each}': _getter(each) for each in _dimensions}
    _calls.update(dict.fromkeys((f'set_{each}' for each in _dimensions), _refuse))
    for _kind, _physics in _KINDS.items():  # each is a kind of the one before, as in Isaac Sim
        _own: dict[str, Any] = {
            **{'shape': _shape, '_physics': _physics, '_moves': _physics[0], '__doc__': Shape.__doc__},
            '_default_name': f'{_kind}_{_shape}'.lower().replace('cuboid', 'cube'),
        }
        _base = type(f'{_kind}{_shape}', (_base,), {**_calls, **_own})
        globals()[_base.__name__] = _base

OBJECTS = (*(f'{kind}{shape}' for shape in _SHAPES for kind in _KINDS), 'GroundPlane')
"""Names of `isaacsim.core.api.objects`."""


def _add(spec: ObjectSpec, prim_path: str, color: Any, visual_material: Any, physics_material: Any) -> None:
    """Add an object, made of materials, to the env of a prim path."""
    if color is None and visual_material is not None:
        color = visual_material.get_color()
    changes = {} if color is None else {'color': as_tuple(color)}
    if physics_material is not None:
        changes['friction'] = friction_of(physics_material)
    IScene.at(prim_path).add_object(replace(spec, prim_path=path_below(prim_path, spec.name), **changes))


class VisualMaterial:
    """Looks of a shape.

    Args:
        prim_path: kept.
        name: its name.
        color: red, green, blue, 0 to 1.
        **options: accepted: shapes have one color, without textures and reflections.
    """

    @checks_arguments
    def __init__(self, prim_path: str, name: str = 'visual_material', color: Any = None, **options: Any):
        self.prim_path, self.name = prim_path, name
        self._color = color

    def get_color(self) -> Any:
        """Return red, green, blue, None if they were not given."""
        return self._color

    @checks_arguments
    def set_color(self, color: Any) -> None:
        """Set red, green, blue for shapes that are made with it from now on."""
        self._color = color


PreviewSurface = OmniPBR = OmniGlass = VisualMaterial


class PhysicsMaterial:
    """Friction and restitution of a shape; of them, its dynamic friction is used."""

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str = 'physics_material',
        static_friction: float | None = None,
        dynamic_friction: float | None = None,
        restitution: float | None = None,
    ):
        self.prim_path, self.name = prim_path, name
        self._values = {
            'static_friction': static_friction,
            'dynamic_friction': dynamic_friction,
            'restitution': restitution,
        }

    def __getattr__(self, call: str) -> Any:
        """Return `get_<quantity>`, None if it was not given, or `set_<quantity>`, for shapes that are made later."""
        verb, _, quantity = call.partition('_')
        if verb not in ('get', 'set') or quantity not in self._values:
            raise AttributeError(call)
        return partial(self._values.get if verb == 'get' else self._set, quantity)

    def _set(self, quantity: str, value: float) -> None:
        self._values[quantity] = float(checked_numbers(f'PhysicsMaterial: {quantity}', value, 1)[0])
