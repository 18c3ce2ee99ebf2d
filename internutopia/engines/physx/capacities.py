"""Capacities of PhysX's buffers on a GPU, which do not grow.

The broad phase pairs what is near one another before collision groups drop the pairs of different envs, and buffers
have to hold them all. Where n envs stand in one place, that is each thing with those of all envs: on an H200, 1,024 H1
that each had a plane asked for 1,572,352 pairs, n (n - 1) / 2 of articulations and n^2 of an articulation and a plane,
and 16 for 5,304 pairs of colliders in aggregates. On a grid it is those of the envs around.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import mujoco
import numpy as np

from internutopia.config import PhysxCfg
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import COMMON

# Isaac Lab's defaults (`PhysxCfg`), where those of PhysX's schema are a fraction: 2^18, 2^10, 2^10, 2^19 and 81,920
_PAIRS, _AGGREGATE_PAIRS, _AGGREGATES = 2**21, 2**25, 2**21
_CONTACTS, _PATCHES = 2**23, 5 * 2**15
_MOST = 2**32 - 1
_NEAR = 4  # colliders of the world that a thing is near, at most
_OTHERS = 3  # colliders of an articulation that one of another one in the same place is near, its own copy among them
_PATCHES_EACH, _POINTS = 4, 6  # patches of a collider that moves, contacts in a patch
_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_FIELD = re.compile(r'PxGpuDynamicsMemoryConfig::(\w+)|(Contact|Force|Patch) buffer overflow')
_NEEDED = re.compile(r'(?:buffers )?to (?:at least )?(\d+)')
_OF_BUFFERS = {'Contact': 'maxRigidContactCount', 'Force': 'maxRigidContactCount', 'Patch': 'maxRigidPatchCount'}

Parts = Sequence[tuple[StageLayout, int]]
"""What is in a physics scene: layouts, and the number of envs of each."""


def capacities_of(parts: Parts, spacing: float, chosen: PhysxCfg) -> dict[str, int]:
    """Return capacities of a physics scene, by attributes of `PhysxSceneAPI`: the chosen ones, else what it needs.

    `spacing`: distance [m] of envs on the grid; 0 if they stand in one place.
    """
    pairs = aggregate_pairs = patches = 0.0
    for layout, slots in parts:
        movers, paths = layout.movers, layout.colliders.values()
        things = len(movers.articulations) + len(movers.free) + len(movers.kinematic)
        fixed = sum(path.startswith('w') for path in paths)
        common = sum(path.startswith(COMMON) for path in paths)
        moving, near, around = len(paths) - fixed - common, min(fixed, _NEAR), envs_around(layout, slots, spacing)
        pairs += things * slots * ((things / 2 + near) * around + common)
        aggregate_pairs += slots * moving * ((_OTHERS / 2 + near) * around + common)
        patches += _PATCHES_EACH * moving * slots
    needed = {
        'gpuFoundLostPairsCapacity': max(_PAIRS, 2 * pairs),  # those that are found and those that are lost
        'gpuFoundLostAggregatePairsCapacity': max(_AGGREGATE_PAIRS, aggregate_pairs),
        'gpuTotalAggregatePairsCapacity': max(_AGGREGATES, 2 * pairs),
        'gpuMaxRigidContactCount': max(_CONTACTS, _POINTS * patches),
        'gpuMaxRigidPatchCount': max(_PATCHES, patches),
    }
    given = {_attribute(field): count for field, count in chosen.model_dump(exclude_none=True).items()}
    return {name: min(int(count), _MOST) for name, count in (needed | given).items()}


def envs_around(layout: StageLayout, slots: int, spacing: float) -> int:
    """Return the number of envs, itself included, that reach into the place of an env or of one next to it."""
    model, movers = layout.movers.model, layout.movers
    own = [geom for geom, path in layout.colliders.items() if not path.startswith(COMMON)]
    if spacing <= 0 or (model.geom_type[own] == _PLANE).any():  # which have no end
        return slots
    places, radii = movers.geom_positions[own, :2], model.geom_rbound[own, None]
    span = float(np.ptp(np.concatenate([places - radii, places + radii]), axis=0).max()) if own else 0.0
    return min(slots, (2 * math.ceil(span / spacing) + 1) ** 2)


def field_of(message: str) -> tuple[str, int | None] | None:
    """Return the field of `PhysxCfg` whose buffer PhysX says is too small, and what it needs; None: it says no such."""
    found = _FIELD.search(message)
    if found is None:
        return None
    buffer = found[1] or _OF_BUFFERS[found[2]]
    field = 'gpu_' + re.sub('[A-Z]', lambda letter: f'_{letter[0].lower()}', buffer)
    needed = _NEEDED.search(message, found.end())
    return field, int(needed[1]) if needed else None


class OverflowLog(logging.Handler):
    """Handler of PhysX's log, that keeps the first message about a buffer that is too small."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.message = ''

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message if it is about a buffer."""
        message = record.getMessage()
        if not self.message and field_of(message):
            self.message = message

    @contextmanager
    def raised(self, envs: int) -> Iterator[None]:
        """Raise RuntimeError that names the config field of a buffer that is too small, by an error or in the log."""
        error: RuntimeError | None = None
        try:
            yield
        except RuntimeError as raised:
            if field_of(str(raised)) is None:
                raise
            error, self.message = raised, str(raised)
        if self.message:
            message, self.message = self.message, ''
            field, needed = field_of(message) or ('', None)
            enough = f', to {needed:,} or more' if needed else ''
            raise RuntimeError(
                f"backend 'physx' on a GPU: a buffer of PhysX is too small for {envs} envs of this scene, which loses "
                f'contacts; set SimConfig.physx.{field}{enough}, or run fewer envs ({message.strip()})'
            ) from error


def _attribute(field: str) -> str:
    """Return the attribute of `PhysxSceneAPI` of a field of `PhysxCfg`."""
    first, *others = field.split('_')
    return first + ''.join(word.capitalize() for word in others)
