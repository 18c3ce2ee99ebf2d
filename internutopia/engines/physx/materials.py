"""Materials of colliders, from frictions and restitutions of a model and what a file says of them to PhysX alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Floats
from internutopia.engines.physx.prims import attribute_text, prim_text
from internutopia.model.physx_attributes import MODES, Attributes
from internutopia.util.log import warn_once

_BOUNCING = 0.9999  # impedance of what has a restitution, see `model/contacts.py`
_PREFIXES = 'physics:', 'physxMaterial:'
_SCHEMAS = '"PhysicsMaterialAPI", "PhysxMaterialAPI"'


class Materials:
    """Materials of the colliders of a model, and their prims."""

    def __init__(self, model: mujoco.MjModel, authored: Mapping[str, Attributes]):
        """`authored`: attributes of files, by the names of geoms."""
        self._model, self._authored = model, authored
        self._frictions, self._modes = _frictions(model), friction_modes(model, authored)
        self._names: dict[tuple[str, str], str] = {}  # by the path of what has them, and text

    def path(self, geom: int, root: str) -> str:
        """Return the path of a geom's material, below that of what has it."""
        return f'{root}/{self._names.setdefault((root, self._text(geom)), f"m{len(self._names)}")}'

    def prims(self, root: str) -> Iterator[str]:
        """Yield the prims of the materials below a path."""
        for (owner, text), name in self._names.items():
            if owner == root:
                yield prim_text('Material', name, _SCHEMAS, text)

    def _text(self, geom: int) -> str:
        friction = float(self._frictions[geom])
        attributes: dict[str, float | int | bool | str] = {
            'physics:staticFriction': friction,
            'physics:dynamicFriction': friction,
            'physics:restitution': _restitution(self._model, geom),
            'physxMaterial:frictionCombineMode': self._modes[geom],
            'physxMaterial:restitutionCombineMode': 'max',
        }
        own = self._authored.get(self._model.geom(geom).name, {})
        attributes |= {name: own[name] for name in own if name.startswith(_PREFIXES) and name != MODES[0]}
        return attribute_text(attributes)


def friction_modes(model: mujoco.MjModel, authored: Mapping[str, Attributes] = MappingProxyType({})) -> list[str]:
    """Return how the friction of each geom is combined with that of another, the stronger of two modes being taken.

    MuJoCo takes the larger friction, or that of the geom of higher priority; modes that a file has count among its
    geoms, all of high priority. Where one of these has a smaller friction than those without priority, it is the
    minimum, for which other geoms have to put up with the mean of theirs, and files with their larger one.
    """
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    friction, first = _frictions(model), model.geom_priority > 0
    ordinary = friction[solid & ~first]
    low = solid & first & (friction < ordinary.max(initial=0.0))
    modes = {model.geom(name).id: str(own[MODES[0]]) for name, own in authored.items() if MODES[0] in own}
    if not low.any():
        return [modes.get(geom, 'max') for geom in range(model.ngeom)]
    if np.ptp(ordinary) > 0:
        warn_once(
            "backend 'physx': geoms with a priority and a low friction are in a scene whose other geoms have different "
            'frictions: between those, the mean is used, whereas MuJoCo uses the larger one'
        )
    if modes and (np.ptp(friction[list(modes)]) > 0 or 'multiply' in modes.values()):  # else all combine to the same
        warn_once(
            "backend 'physx': a material of a file has a lower friction than geoms of other files, so combine modes of "
            'materials do not count in this scene'
        )
    return ['min' if low[geom] else 'max' if first[geom] else 'average' for geom in range(model.ngeom)]


def torsional_radius(model: mujoco.MjModel, geom: int) -> float:
    """Return the radius [m] of a patch of contact whose friction is the torsional one of a geom; 0 without one.

    It is exact where the sliding friction of the geom counts, not that of the other one.
    """
    sliding, torsional = model.geom_friction[geom, :2].tolist()
    return torsional / sliding if model.geom_condim[geom] > 3 and sliding > 0 else 0.0


def _frictions(model: mujoco.MjModel) -> Floats:
    """Return sliding frictions of geoms; 0 where contacts have none."""
    return np.where(model.geom_condim > 1, model.geom_friction[:, 0], 0.0)


def _restitution(model: mujoco.MjModel, geom: int) -> float:
    """Return the restitution of a geom that `make_bouncy` made one, else 0."""
    damping = -float(model.geom_solref[geom, 1])
    if damping <= 0 or model.geom_solimp[geom, 0] < _BOUNCING:
        return 0.0
    return float(np.clip(damping * model.opt.timestep - 1, 0.0, 1.0))
