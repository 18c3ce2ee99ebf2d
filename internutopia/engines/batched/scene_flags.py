"""Scene flags: what may change in a scene without another file, as arrays of a state.

They are the self-collisions of its robots, and the joints that are broken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import PhysicsState
from internutopia.engines.batched.env_batch import EnvBatch
from internutopia.model.compiled import CompiledScene

_COLLISIONS, _BROKEN = 'self collisions', 'broken joints'
_VALUES = None, True, False  # of self-collisions: a number of each in states


def scene_flags(scene: CompiledScene) -> dict[str, NDArray[np.int8]]:
    """Return the flags of a scene, `(robots,)` and, if it has joints of a script, `(joints,)`."""
    collisions = [_VALUES.index(robot.self_collisions) for robot in scene.source.robots]
    flags = {_COLLISIONS: np.array(collisions, np.int8)}
    if scene.source.joints:
        flags[_BROKEN] = np.array([joint.broken for joint in scene.source.joints], np.int8)
    return flags


def flag_fault(state: PhysicsState) -> str | None:
    """Return the fault of a state whose self-collisions are no flags; None if they are."""
    flags = state.arrays[_COLLISIONS].tolist()
    if all(0 <= flag < len(_VALUES) for flag in flags):
        return None
    return f'its {_COLLISIONS} are {flags}, not 0 to {len(_VALUES) - 1}'


def read_flags(scene: CompiledScene, state: PhysicsState) -> tuple[dict[str, bool | None], list[bool]]:
    """Return the self-collisions by robot, and which joints are broken, in a state of a scene."""
    collisions = [_VALUES[flag] for flag in state.arrays[_COLLISIONS].tolist()]
    broken = state.arrays.get(_BROKEN, np.zeros(0, np.int8)).astype(bool).tolist()
    return dict(zip(scene.robot_names, collisions, strict=True)), broken


def model_state(env_batch: EnvBatch, slot: int, scene: CompiledScene) -> PhysicsState:
    """Return the part of the state of a slot that seldom changes; the slot runs a scene."""
    return PhysicsState(scene.digest, {**env_batch.changed_fields(slot, scene), **scene_flags(scene)})
