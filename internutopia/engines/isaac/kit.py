"""Stage of Isaac Sim with the prims of all env batches, in one physics scene.

Isaac Sim has one stage, and steps everything on it. Copies stand on a grid, `/World/physics/p<part>/s<slot>`, and
groups of colliders keep them apart. A part that is opened is there when the stage has been built again: then physics of
all parts starts from the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.app import IsaacSim
from internutopia.engines.isaac.tensors import PROPERTIES, STATES, KitColumns, KitContactForces, KitContactPoints
from internutopia.engines.isaac.usd_prims import Floats, Prims, pose
from internutopia.engines.physx.capacities import capacities_of
from internutopia.engines.physx.prims import scene_text
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import COMMON, POSES, TensorAccess, slot_places

_MOST_CONTACTS = 16  # of a collider at once
_ROOT = '/World/physics'
_INVISIBLE = 'def Xform "physics"\n{\ntoken visibility = "invisible"\n}\n'


class KitStage:
    """The stage of the process's Isaac Sim; parts stand `spacing` [m] apart."""

    def __init__(self, sim: IsaacSim, spacing: float):
        self.sim = sim
        self.model: mujoco.MjModel | None = None  # whose gravity the physics scene has
        self.parts: list[KitPart] = []
        self.stale = False
        self.generation = 0
        """Number of the stage: what was made of it is gone when it grows."""
        self.physics: Any = None  # of Isaac Sim, on this stage
        self._spacing = spacing

    def open(self, layout: StageLayout, slots: int) -> KitPart:
        """Return a part with so many copies of what a layout describes, which is there after `rebuild`."""
        part = KitPart(self, layout, slots)
        self.parts.append(part)
        self.stale = True
        return part

    def rebuild(self) -> None:
        """Build the stage again, and start physics."""
        self.stale = False
        self.generation += 1
        self.sim.new_stage()
        assert self.model is not None
        prims = Prims(self.sim.stage)
        parts = [(part.layout, part.slots) for part in self.parts]
        capacities = capacities_of(parts, self._spacing, self.sim.config.physx) if self.sim.gpu else {}
        prims.update(self.sim.physics_scene, scene_text(self.model, 'scene', True, self.sim.gpu, capacities))
        prims.copy(_INVISIBLE, [_ROOT], 'physics')  # `Visuals` are seen
        ends = np.cumsum([part.slots for part in self.parts])
        places = np.split(slot_places(int(ends[-1]), self._spacing), ends[:-1])
        for number, (part, own) in enumerate(zip(self.parts, places, strict=True)):
            part.write(prims, f'{_ROOT}/p{number}', own)
        self.sim.start()
        self.physics = self.sim.simulation_view()

    def step(self) -> None:
        """Make one physics step with all parts."""
        for part in self.parts:
            part.write_efforts()
        self.sim.step()


class KitPart(TensorAccess):
    """`slots` copies of what a layout describes."""

    shared = True

    def __init__(self, kit: KitStage, layout: StageLayout, slots: int):
        self._kit, self.layout, self.slots = kit, layout, slots
        self._origins = np.zeros((slots, 3), np.float32)
        self.roots: list[str] = []  # of the slots
        self.common = ''  # path of what they have in common
        self._efforts: list[KitColumns] = []
        self._views: dict[tuple[str, ...], Any] = {}  # of Isaac Sim, by paths

    def write(self, prims: Prims, path: str, origins: Floats) -> None:
        """Write the prims of all slots to the stage, at these places `(slots, 3)` [m]."""
        self._origins, self._efforts, self._views = origins.astype(np.float32), [], {}
        self.roots = [f'{path}/s{slot:05}' for slot in range(self.slots)]
        self.common = f'{path}/common'
        common, text = (text.replace(COMMON, self.common) for text in (self.layout.common, self.layout.text))
        prims.copy(f'def Xform "part"\n{{\ndef Xform "common"\n{{\n{common}}}\n}}\n', [path], 'part')
        prims.copy(f'def Xform "env"\n{{\n{text.replace("@", "/env")}}}\n', self.roots, 'env')
        prims.set([value for own, origin in zip(self.roots, origins, strict=True) for value in pose(own, origin)])

    @override
    def step(self, dt: float) -> None:
        """Advance all parts by the time step of Isaac Sim."""
        self._kit.step()

    def write_efforts(self) -> None:
        """Write efforts again, which count for one step."""
        for efforts in self._efforts:
            if efforts.values.any():
                efforts.write()

    @override
    def columns(self, kind: str, paths: Sequence[str]) -> KitColumns:
        articulated, sim, physics = kind.startswith('ARTICULATION_'), self._kit.sim, self._kit.physics
        everywhere = self.paths_everywhere(paths)
        view = self._views.get(tuple(everywhere))
        if view is None:
            make = physics.create_articulation_view if articulated else physics.create_rigid_body_view
            view = self._views[tuple(everywhere)] = make(everywhere)
        found = view.prim_paths
        if articulated:  # found at its root link or at the joint that fixes it
            found, everywhere = ([path.rpartition('/')[0] for path in each] for each in (found, everywhere))
        name = kind.removeprefix('ARTICULATION_').removeprefix('RIGID_BODY_').removeprefix('BODY_')
        state = name in STATES
        columns = KitColumns(
            view,
            STATES[name] if state else PROPERTIES[name],
            self.rows(found, everywhere),
            (sim.config.device if state else 'cpu') if sim.gpu else None,
            self._origins if kind.endswith(POSES) else None,
        )
        if name == 'DOF_ACTUATION_FORCE':
            self._efforts.append(columns)
        return columns

    @override
    def contact_forces(self, paths: Sequence[str], against: Sequence[str] = ()) -> KitContactForces:
        """Return net contact forces; without `against`, Isaac Sim has no friction in them."""
        filters = [self.paths_in(slot, against) for slot in range(self.slots) for _ in paths] if against else []
        return KitContactForces(*self._contacts(paths, filters), self._kit.sim.dt, bool(against))

    @override
    def contact_points(self, paths: Sequence[str], most: int) -> KitContactPoints:
        return KitContactPoints(*self._contacts(paths, []), self._kit.sim.dt, most, self._origins)

    def _contacts(self, paths: Sequence[str], filters: list[list[str]]) -> tuple[Any, NDArray[np.intp]]:
        sensors = self.paths_everywhere(paths)
        view = self._kit.physics.create_rigid_contact_view(
            sensors, filter_patterns=filters, max_contact_data_count=_MOST_CONTACTS * len(sensors)
        )
        return view, self.rows(view.sensor_paths, sensors)

    @override
    def close(self) -> None:
        """Leave the part out when the stage is built again."""
        if self in self._kit.parts:
            self._kit.parts.remove(self)
