"""Capacities of PhysX's buffers on a GPU, which do not grow.

All envs stand in one place, so that the broad phase finds the bodies of each env near those of all others before
collision groups drop these pairs: their number grows with the square of the number of envs. On an H200, 16 H1 on a
plane asked for 5,304 pairs of colliders in aggregates, and 1,024 H1 for 1,572,352 pairs of things: n (n - 1) / 2 of
articulations and n^2 of an articulation and a plane.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from internutopia.engines.physx.stage import StageLayout

# Isaac Lab's defaults (`PhysxCfg`), where those of PhysX's schema are a fraction: 2^18, 2^10, 2^10, 2^19 and 81,920
_PAIRS, _AGGREGATE_PAIRS, _AGGREGATES = 2**21, 2**25, 2**21
_CONTACTS, _PATCHES = 2**23, 5 * 2**15
_MOST = 2**32 - 1
_NEAR = 4  # colliders of the world that a thing is near, at most
_OTHERS = 3  # colliders of an articulation that one of another one in the same place is near, its own copy among them
_PATCHES_EACH, _POINTS = 4, 6  # patches of a collider that moves, contacts in a patch
_TOO_SMALL = re.compile(r'PxGpuDynamicsMemoryConfig::(\w+)(?:\D+(\d+))?')


def capacities_of(layout: StageLayout, slots: int) -> dict[str, int]:
    """Return capacities for so many copies of a stage in one place, by attributes of `PhysxSceneAPI`."""
    movers, paths = layout.movers, layout.colliders.values()
    things = len(movers.articulations) + len(movers.free) + len(movers.kinematic)
    fixed = sum(path.startswith('w') for path in paths)
    moving, near = len(paths) - fixed, min(fixed, _NEAR)
    pairs = things * slots * (things * slots / 2 + near * slots)
    aggregate_pairs = slots**2 * moving * (_OTHERS / 2 + near)
    patches = _PATCHES_EACH * moving * slots
    needed = {
        'gpuFoundLostPairsCapacity': max(_PAIRS, 2 * pairs),  # those that are found and those that are lost
        'gpuFoundLostAggregatePairsCapacity': max(_AGGREGATE_PAIRS, aggregate_pairs),
        'gpuTotalAggregatePairsCapacity': max(_AGGREGATES, 2 * pairs),
        'gpuMaxRigidContactCount': max(_CONTACTS, _POINTS * patches),
        'gpuMaxRigidPatchCount': max(_PATCHES, patches),
    }
    return {name: min(int(count), _MOST) for name, count in needed.items()}


@contextmanager
def capacity_error(slots: int) -> Iterator[None]:
    """Let an error of PhysX about a buffer that is too small say which one it is, and what to do."""
    try:
        yield
    except RuntimeError as error:
        found = _TOO_SMALL.search(str(error))
        if found is None:
            raise
        name, needed = found.groups()
        wanted = f', which would have to be {int(needed):,}' if needed else ''
        raise RuntimeError(
            f"backend 'physx' on a GPU: the buffer {name} of PhysX (physxScene:gpu{name[0].upper()}{name[1:]}) is too "
            f'small for {slots} envs of this scene{wanted}: run fewer envs, or share them among workers'
        ) from error
