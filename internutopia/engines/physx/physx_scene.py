"""Compiled scenes as PhysX takes them: stage, drives, structure that envs of a batch share, changeable fields."""

from __future__ import annotations

import hashlib
from functools import cached_property
from operator import attrgetter
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS

from internutopia.engines.physx.drives import Drives
from internutopia.engines.physx.prims import BALL
from internutopia.engines.physx.sensors import check_sensors
from internutopia.engines.physx.stage import StageLayout, write_stage
from internutopia.model.compiled import CompiledScene
from internutopia.model.physx_attributes import MODES, physx_attributes
from internutopia.util.log import warn_once

_VISUAL_PREFIXES = ('cam_', 'light_', 'mat_', 'site_', 'geom_rgba')
_DERIVED = frozenset(
    {'body_subtreemass', 'body_invweight0', 'dof_M0', 'dof_invweight0', 'tendon_invweight0', 'actuator_acc0'}
)
CHANGEABLE = MODEL_FIELDS & (
    _DERIVED
    | {'actuator_gainprm', 'actuator_biasprm', 'body_mass', 'body_inertia', 'body_ipos', 'body_iquat'}
    | {'dof_armature', 'dof_damping', 'dof_frictionloss', 'geom_friction'}
)
"""Fields that can have their own values in each env."""
STATE = ('qpos', 'qvel', 'mocap_pos', 'mocap_quat')
"""Arrays of `MjData` that PhysX has, too."""
MASSES = ('body_mass', 'body_inertia', 'body_ipos', 'body_iquat')
"""Fields of masses."""
VISUAL = frozenset(name for name in MODEL_FIELDS if name.startswith(_VISUAL_PREFIXES))
"""Fields of what is only seen."""
_HELD = (MODEL_FIELDS - CHANGEABLE - VISUAL) | {'geom_friction'}  # of shapes, which are known by it


class PhysxScene:
    """A compiled scene for PhysX. NotImplementedError for what PhysX cannot do."""

    def __init__(self, scene: CompiledScene):
        model = scene.model
        _check(model)
        check_sensors(scene)
        self.drives = Drives(model)
        self._model, self._structure = model, scene.structure

    @cached_property
    def layout(self) -> StageLayout:
        """Stage of one env, with its own physics scene."""
        return write_stage(self._model)

    @cached_property
    def shared_layout(self) -> StageLayout:
        """Stage of one env for a physics scene that all envs are in."""
        return write_stage(self._model, shared_scene=True)

    @cached_property
    def structure(self) -> bytes:
        """Digest of all in the model that PhysX cannot change at run time."""
        digest = hashlib.blake2b(self._structure, digest_size=16)
        for name in sorted(_HELD):
            digest.update(np.ascontiguousarray(attrgetter(name)(self._model)).tobytes())
        digest.update(repr(sorted(physx_attributes(self._model).items())).encode())
        return digest.digest()


_SCENES: WeakKeyDictionary[CompiledScene, PhysxScene] = WeakKeyDictionary()


def physx_scene(scene: CompiledScene) -> PhysxScene:
    """Return a compiled scene as PhysX takes it; made once. NotImplementedError for what PhysX cannot do."""
    if scene not in _SCENES:
        _SCENES[scene] = PhysxScene(scene)
    return _SCENES[scene]


def _check(model: mujoco.MjModel) -> None:
    limited = [joint for joint in range(model.njnt) if model.jnt_type[joint] == BALL and model.jnt_limited[joint]]
    gravity = np.isin(model.body_gravcomp, (0.0, 1.0)).all()
    for present, what in (
        (bool(limited), f'limits of ball joints ({", ".join(repr(model.joint(joint).name) for joint in limited)})'),
        (model.ntendon > 0, 'tendons'),
        (model.nflex > 0, 'flexible bodies'),
        (model.nplugin > 0, 'plugins'),
        (not gravity, 'gravity compensation of a part of the weight'),
        (bool(model.opt.density or model.opt.viscosity), 'forces of a medium'),
    ):
        if present:
            raise NotImplementedError(f"backend 'physx' has no counterpart of {what} of a model; use 'mujoco'")
    moded = {model.geom(name).id for name, own in physx_attributes(model).items() if MODES[0] in own}
    if not moded.issuperset([*model.pair_geom1.tolist(), *model.pair_geom2.tolist()]):
        warn_once("backend 'physx' takes friction and restitution from the geoms: those of contact pairs are ignored")
