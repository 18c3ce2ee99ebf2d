"""Carry-over: the state of an env in a model with other objects or joints in it.

What both models have keeps its state to the bit. Elements of two models are the same if they have the same name. Those
without a name are the same if they are at the same place among those of the same body (of the model, for actuators,
sensors and constraints).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.batched.env_batch import FIELD
from internutopia.model.compiled import CompiledScene

Ints = NDArray[np.intp]
Arrays = Mapping[str, NDArray[Any]]

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_TYPES = {
    'body': mujoco.mjtObj.mjOBJ_BODY,
    'jnt': mujoco.mjtObj.mjOBJ_JOINT,
    'geom': mujoco.mjtObj.mjOBJ_GEOM,
    'site': mujoco.mjtObj.mjOBJ_SITE,
    'cam': mujoco.mjtObj.mjOBJ_CAMERA,
    'light': mujoco.mjtObj.mjOBJ_LIGHT,
    'mat': mujoco.mjtObj.mjOBJ_MATERIAL,
    'actuator': mujoco.mjtObj.mjOBJ_ACTUATOR,
    'tendon': mujoco.mjtObj.mjOBJ_TENDON,
    'sensor': mujoco.mjtObj.mjOBJ_SENSOR,
    'eq': mujoco.mjtObj.mjOBJ_EQUALITY,
}
_STATE = {  # fields of `MjData`, and whose rows they have
    'qpos': 'qpos',
    'qvel': 'dof',
    'act': 'act',
    'qacc_warmstart': 'dof',
    'ctrl': 'actuator',
    'qfrc_applied': 'dof',
    'xfrc_applied': 'body',
    'eq_active': 'eq',
    'mocap_pos': 'mocap',
    'mocap_quat': 'mocap',
}


def carry_over(before: Arrays, old: CompiledScene, start: Arrays, new: CompiledScene) -> dict[str, NDArray[Any]]:
    """Return the state of an env in another scene.

    Args:
        before: state of its slot in the old scene, as `EnvBatch.get_state` returns it.
        old: that scene.
        start: state of a slot that starts in the new scene.
        new: that scene.
    """
    a, b = old.model, new.model
    data, after = mujoco.MjData(a), mujoco.MjData(b)
    mujoco.mj_setState(a, data, before['state'], _INTEGRATION)
    mujoco.mj_setState(b, after, start['state'], _INTEGRATION)
    after.time = data.time
    for name, kind in _STATE.items():
        mine, theirs = _common(a, b, kind)
        getattr(after, name)[theirs] = getattr(data, name)[mine]
    state = {name: array.copy() for name, array in start.items()}
    mujoco.mj_getState(b, after, state['state'], _INTEGRATION)
    for name, kind in (('efforts', 'dof'), ('sensors', 'sensordata')):
        mine, theirs = _common(a, b, kind)
        state[name][theirs] = before[name][mine]
    state['fresh'] = before['fresh']
    for name, changed in before.items():
        if name.startswith(FIELD):
            state |= _field(name, changed, a, b)
    return state


def _field(name: str, changed: NDArray[Any], a: mujoco.MjModel, b: mujoco.MjModel) -> dict[str, NDArray[Any]]:
    """Return a model field that was changed in the old model, in the new one; empty if it belongs to no elements."""
    field = name.removeprefix(FIELD)
    if field.startswith('opt.'):
        return {name: changed}
    kind = 'qpos' if field.startswith('qpos') else field.partition('_')[0]
    if kind not in (*_TYPES, 'qpos', 'dof', 'bvh'):
        return {}
    mine, theirs = _common(a, b, kind)
    own, values = getattr(a, field)[: len(changed)], getattr(b, field).copy()
    differs = changed[mine] != own[mine]
    values[theirs] = np.where(differs, changed[mine], values[theirs])
    return {name: values[: b.body_bvhnum.sum()] if kind == 'bvh' else values}


def _common(a: mujoco.MjModel, b: mujoco.MjModel, kind: str) -> tuple[Ints, Ints]:
    """Return the rows of the elements of a kind that both models have."""
    theirs = {key: row for row, key in enumerate(_keys(b, kind))}
    pairs = [(row, theirs[key]) for row, key in enumerate(_keys(a, kind)) if key in theirs]
    rows = np.array(pairs, np.intp).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _keys(model: mujoco.MjModel, kind: str) -> list[Hashable]:
    """Return what identifies each row of the arrays of a kind."""
    if kind == 'mocap':
        bodies = sorted(np.flatnonzero(model.body_mocapid >= 0), key=lambda body: model.body_mocapid[body])
        return [_keys(model, 'body')[body] for body in bodies]
    owner, widths = {
        'qpos': ('jnt', lambda: np.diff([*model.jnt_qposadr, model.nq])),
        'dof': ('jnt', lambda: np.diff([*model.jnt_dofadr, model.nv])),
        'act': ('actuator', lambda: model.actuator_actnum),
        'sensordata': ('sensor', lambda: model.sensor_dim),
        'bvh': ('body', lambda: model.body_bvhnum),
    }.get(kind, (None, None))
    if owner is not None:
        return [(key, i) for key, width in zip(_keys(model, owner), widths(), strict=True) for i in range(width)]
    return _element_keys(model, kind)


def _element_keys(model: mujoco.MjModel, kind: str) -> list[Hashable]:
    count = {'eq': model.neq, 'sensor': model.nsensor, 'actuator': model.nu}.get(kind)
    if count is None:
        count = getattr(model, f'n{kind}')
    bodies = getattr(model, f'{kind}_bodyid', None)
    unnamed: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for i in range(count):
        name = mujoco.mj_id2name(model, _TYPES[kind], i)
        if name:
            keys.append(name)
            continue
        place = None if bodies is None else mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, bodies[i])
        unnamed[place] += 1
        keys.append((place, unnamed[place]))
    return keys
