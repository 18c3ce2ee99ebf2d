"""Warp models: those of MuJoCo that `mujoco_warp` can run, alone or side by side, and the buffers that they need.

`mujoco_warp` declares which fields of a model can differ between its worlds. Scenes whose models agree in everything
else share an env batch. Buffers of contacts and constraints have fixed capacities.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
from mujoco_warp._src.warp_util import is_array_spec
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene

_MIN_FRICTION = 1e-5  # mjMINMU: MuJoCo raises lower coefficients to it in each contact, `mujoco_warp` does not

# Fields of `mjw.Model` that can have their own values in each world
BATCHED_FIELDS = frozenset(
    field.name
    for field in dataclasses.fields(mjw.Model)
    if is_array_spec(field.type) and getattr(field.type, 'shape', ())[:1] == ('*',)
)

_O = mjw.OverflowType
_CONTACTS = _O.BROADPHASE | _O.NARROWPHASE | _O.CCD
GROWABLE = _CONTACTS | _O.NEFC | _O.NJMAX_NNZ | _O.CONTACT_MATCH  # flags of buffers that can be enlarged

_WARP_SCENES: WeakKeyDictionary[CompiledScene, WarpScene] = WeakKeyDictionary()


class WarpScene:
    """Compiled scene converted for `mujoco_warp`. ValueError if it cannot run it, with the feature's name."""

    def __init__(self, scene: CompiledScene):
        self.model = _with_friction(scene.model)
        unsupported = None
        if scene.model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP:
            unsupported = 'the option flag sleep=enable'
        else:
            try:
                self._warp_model = put_model(self.model, 'cpu')
                with wp.ScopedDevice('cpu'):
                    mjw.make_data(self.model, nconmax=1, njmax=1)
            except (NotImplementedError, ValueError) as error:
                unsupported = str(error)
        if unsupported is not None:
            raise ValueError(f"mujoco_warp cannot run this scene: {unsupported}; backend='mujoco' can")
        digest = hashlib.blake2b(scene.structure, digest_size=16)
        for part in _shared_parts(self._warp_model):
            digest.update(part)
        self.structure = digest.digest()

    @cached_property
    def batched_fields(self) -> Mapping[str, NDArray[Any]]:
        """The fields that can differ between worlds, without the axis of worlds."""
        return {name: getattr(self._warp_model, name).numpy()[0] for name in BATCHED_FIELDS}

    @cached_property
    def static_geoms(self) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """The geoms that never move, with their positions `(k, 3)` [m] and rotations `(k, 3, 3)`, env frame."""
        model = self.model
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        bodies = model.geom_bodyid
        fixed = (model.body_weldid[bodies] == 0) & (model.body_mocapid[model.body_rootid[bodies]] < 0)
        geoms = np.flatnonzero(fixed)
        return geoms, data.geom_xpos[geoms], data.geom_xmat[geoms].reshape(-1, 3, 3)


def warp_scene(scene: CompiledScene) -> WarpScene:
    """Convert a scene for `mujoco_warp`, once. ValueError if it cannot run it."""
    if scene not in _WARP_SCENES:
        _WARP_SCENES[scene] = WarpScene(scene)
    return _WARP_SCENES[scene]


def put_model(model: mujoco.MjModel, device: wp.DeviceLike) -> mjw.Model:
    """Return the model on a device. NotImplementedError or ValueError for what `mujoco_warp` has no code for."""
    with wp.ScopedDevice(device), warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='.*MJ_MINMU')  # `_with_friction` and the views see to it
        warp_model = mjw.put_model(model)
    warp_model.opt.warn_overflow = 0  # printed by kernels; the batch logs it
    return warp_model


def _with_friction(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model, or a copy without friction coefficients that are too small for the solver."""
    if (model.geom_friction >= _MIN_FRICTION).all() and (model.pair_friction >= _MIN_FRICTION).all():
        return model
    model = copy.copy(model)
    for values in (model.geom_friction, model.pair_friction):
        np.maximum(values, _MIN_FRICTION, out=values)
    return model


def _shared_parts(value: Any) -> Iterator[bytes]:
    """Return everything in a model that its worlds share."""
    if isinstance(value, wp.array):
        yield repr(value.shape).encode() + value.numpy().tobytes()
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name not in BATCHED_FIELDS:
                yield field.name.encode()
                yield from _shared_parts(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _shared_parts(item)
    else:
        yield repr(value).encode()


@dataclasses.dataclass
class Capacities:
    """Sizes of the buffers of a batch."""

    contacts: int  # per world, in the mean
    constraints: int  # per world
    nonzeros: int | None = None  # of a sparse constraint Jacobian, per world; None is a guess of the engine
    matches: int = 64  # contacts per contact sensor

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Capacities:
        """Return what a scene is likely to need: all its limits, and some contacts for each geom that moves."""
        moves = model.body_weldid[model.geom_bodyid] != 0
        touches = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        contacts = 16 + 2 * int((moves & touches).sum()) + 4 * model.npair
        rows = 2 * (int(max([3, *model.geom_condim, *model.pair_dim])) - 1)  # of the friction pyramid of a contact
        rest = 6 * model.neq + 2 * (model.njnt + model.ntendon) + int((model.dof_frictionloss > 0).sum())
        return cls(contacts, rows * contacts + rest)

    def grown(self, flags: int, nv: int) -> Capacities:
        """Double what was too small according to the engine's `flags`; `nv` is the number of dofs of a world."""
        grown = self
        if flags & _CONTACTS:
            grown = dataclasses.replace(grown, contacts=2 * grown.contacts)
        if flags & _O.NEFC:
            grown = dataclasses.replace(grown, constraints=2 * grown.constraints)
        if flags & _O.CONTACT_MATCH:
            grown = dataclasses.replace(grown, matches=2 * grown.matches)
        if flags & _O.NJMAX_NNZ or grown.nonzeros is not None:
            grown = dataclasses.replace(grown, nonzeros=grown.constraints * nv)
        return grown
