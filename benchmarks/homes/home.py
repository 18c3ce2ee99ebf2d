"""Home, what was written of one and what is true of it: rooms, models, colours, and spaces that are free."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from benchmarks.homes.designs import Design, Part, SpaceKind, Vec3, vec3
from benchmarks.homes.materials import Appearance, Materials, choose_materials, write_materials
from benchmarks.homes.model_file import mesh_places, write_model
from benchmarks.homes.placing import Furnishing, Placed, placed_box
from benchmarks.homes.rooms import CLEAR, HEIGHT, Plan, Room, plan_rooms
from benchmarks.homes.sizes import SIZES, HomeSize, SizeName
from benchmarks.homes.small_things import MOVABLE
from benchmarks.homes.stage import ModelPrim, Variant, write_stage

Links = Literal['symlink', 'text']
Layout = Literal['grscenes', 'reorganised']

_DETAILS = (0.3, 3.0)  # how fine round things may be
_STEP = 0.1  # m, of the grid on which a free place is searched for


class PlacedModel(NamedTuple):
    """A model of a home.

    Attributes:
        path: of its prim.
        category, scope: as in the path.
        file: that it refers to.
        position: of its origin [m].
        yaw: [rad].
        low, high: corners of its bounding box along the axes of the home [m].
        movable: whether it is a rigid body in the `interaction` stage.
        joints: paths of its joints, none if it is not articulated.
        active: whether it is in the `navigation` stage.
    """

    path: str
    category: str
    scope: str
    file: Path
    position: Vec3
    yaw: float
    low: Vec3
    high: Vec3
    movable: bool
    joints: tuple[str, ...]
    active: bool


class PlacedMesh(NamedTuple):
    """A mesh with points: its prim, that of its model, the name of its material, and its number of triangles."""

    path: str
    model: str
    material: str
    triangles: int


class FreeSpace(NamedTuple):
    """A box without triangles, corners along the axes of the home [m].

    Attributes:
        kind: `'doorway'`: from the floor to the lintel and from side to side, 0.9 m wide and 2 m high at least, and
            1 m to both sides, except for the door itself in the `interaction` stage; `'below_table'`; `'bowl'` and
            `'cupboard'`: a ball that starts in it stays on that.
        low, high: its corners [m].
        model: path of the table, bowl or cupboard; of the door in a doorway.
        rooms: indices of the rooms that it connects, or the one that it is in.
    """

    kind: SpaceKind
    low: Vec3
    high: Vec3
    model: str
    rooms: tuple[int, ...]


@dataclass(frozen=True)
class Home:
    """A home on disk, and the truth about it; lengths in metres, whatever the files say theirs are in.

    Attributes:
        folder: of all its files.
        navigation, interaction: the two stages.
        materials_folder: what the files of textures are relative to.
        extent: of all rooms together, width and depth [m], from the origin; floors are at z = 0.
        height: of the rooms [m].
        rooms: the largest first.
        models: all, in the order of the stages.
        meshes: by the path of the prim.
        materials: their appearances, by name.
        spaces: what is free.
        start: a free place for an H1: x, y [m], yaw towards the nearest doorway of the room [rad].
    """

    folder: Path
    navigation: Path
    interaction: Path
    materials_folder: Path
    extent: tuple[float, float]
    height: float
    rooms: tuple[Room, ...]
    models: tuple[PlacedModel, ...]
    meshes: Mapping[str, PlacedMesh]
    materials: Mapping[str, Appearance]
    spaces: tuple[FreeSpace, ...]
    start: Vec3

    def appearance(self, mesh: str) -> Appearance:
        """Return the appearance of the mesh with that path. KeyError if there is none."""
        return self.materials[self.meshes[mesh].material]

    def spaces_of(self, kind: SpaceKind) -> list[FreeSpace]:
        """The free spaces of a kind."""
        return [space for space in self.spaces if space.kind == kind]


def write_home(
    folder: Path,
    size: SizeName = 'home',
    seed: int = 0,
    *,
    preview: bool = False,
    links: Links = 'symlink',
    layout: Layout = 'grscenes',
) -> Home:
    """Write a home into a folder that has no other; the same seed makes the same one.

    Args:
        folder: is made if there is none.
        size: `'home'` (500 models, a million triangles) or `'small'` (40 models, 60,000 triangles).
        seed: of everything that is chosen.
        preview: write all materials as UsdPreviewSurface; everything else is the same, names too.
        links: kind of `Materials` next to a model, and `Materials` and `models` next to a stage: symbolic links, or
            text files with the path, as links become in some archives (USD does not find the models then).
        layout: `'reorganised'`: materials in `Material/mdl`, models as `GRScenes_assets/<category>/<uid>/usd/<uid>.usd`
            that call them `./Materials/...` anyway, without any link.

    Raises:
        OSError: the folder cannot be written, or has a home already.
        ValueError: there is no such size.
    """
    if size not in SIZES:
        raise ValueError(f'there is no size {size!r}, there are {", ".join(map(repr, SIZES))}')
    return _Writer(Path(folder), SIZES[size], seed, links, layout).write(preview=preview)


class _Writer:
    def __init__(self, folder: Path, size: HomeSize, seed: int, links: Links, layout: Layout):
        self._folder = folder
        self._size = size
        self._seed = seed
        self._links = links
        self._layout = layout
        self._scene = folder / 'scenes' / f'{self._hash("scene")[:24]}_usd'
        self._materials = folder / ('Materials' if layout == 'grscenes' else 'Material/mdl')

    def write(self, *, preview: bool) -> Home:
        plan, furnishing = _furnish(self._size, self._seed)
        designs = _refine(furnishing, self._size.triangles)
        materials, of_parts = self._choose_materials(designs)
        self._materials.mkdir(parents=True)
        write_materials(self._materials, materials, self._seed, self._size.pixels)
        files = [self._model_file(design, k) for k, design in enumerate(designs)]
        for design, file, names in zip(designs, files, of_parts, strict=True):
            appearances = [materials.appearances[name] for name in names]
            write_model(file, design, appearances, './Materials', preview=preview)
            if self._layout == 'grscenes':
                self._link(file.parent / 'Materials')
        prims = self._prims(plan, furnishing.placed, designs, files)
        lights = [vec3([*room.centre, HEIGHT - 0.3]) for room in plan.rooms[: len(plan.rooms) // 2]]
        stages = {variant: self._write_stage(prims, lights, variant) for variant in ('navigation', 'interaction')}
        if self._layout == 'grscenes':
            self._link(self._scene / 'Materials')
            self._link(self._scene / 'models')
        meshes = {}
        for prim, placed in zip(prims, furnishing.placed, strict=True):
            for place, name in zip(mesh_places(prim.design), of_parts[placed.design], strict=True):
                path = f'{prim.path}/{place.path}'
                count = len(prim.design.parts[place.part].surface.triangles)
                meshes[path] = PlacedMesh(path, prim.path, name, count)
        return Home(
            folder=self._folder,
            navigation=stages['navigation'],
            interaction=stages['interaction'],
            materials_folder=self._materials,
            extent=self._size.extent,
            height=HEIGHT,
            rooms=plan.rooms,
            models=tuple(
                _placed_model(prim, placed, files[placed.design])
                for prim, placed in zip(prims, furnishing.placed, strict=True)
            ),
            meshes=meshes,
            materials=materials.appearances,
            spaces=tuple(_spaces(plan, prims, furnishing.placed)),
            start=_free_place(plan, prims, furnishing.placed),
        )

    def _choose_materials(self, designs: Sequence[Design]) -> tuple[Materials, list[list[str]]]:
        """The materials, and their names for the parts of all designs."""
        roles = Counter(role for design in designs for role in _uses(design).values())
        materials = choose_materials(self._seed, roles, self._size.materials, self._size.textures)
        turns = {role: cycle(names) for role, names in materials.by_role.items()}
        of_parts = []
        for design in designs:
            chosen = {use: next(turns[role]) for use, role in _uses(design).items()}
            of_parts.append([chosen[_use(part, k)] for k, part in enumerate(design.parts)])
        return materials, of_parts

    def _model_file(self, design: Design, index: int) -> Path:
        uid = self._hash(index)
        if self._layout == 'reorganised':
            return self._folder / 'GRScenes_assets' / design.category / uid / 'usd' / f'{uid}.usd'
        kind = 'layout' if design.scope in ('Base', 'BaseAnimation') else 'object'
        moves = 'articulated' if design.joints else 'others'
        return self._folder / 'models' / kind / moves / design.category / uid / 'instance.usd'

    def _prims(
        self, plan: Plan, placed: Sequence[Placed], designs: Sequence[Design], files: Sequence[Path]
    ) -> list[ModelPrim]:
        numbers: Counter[int] = Counter()
        main = [opening.centre for opening in plan.openings if opening.kind == 'main_door']
        found = []
        for model in placed:
            design = designs[model.design]
            name = f'model_{self._hash(model.design)}_{numbers[model.design]}'
            numbers[model.design] += 1
            relative = os.path.relpath(files[model.design], self._scene)
            if self._layout == 'grscenes':
                relative = f'./{Path(relative).relative_to("../..")}'  # through the link
            path = f'/Root/Meshes/{design.scope}/{design.category}/{name}'
            inner_door = design.category == 'door' and model.position[:2] not in main
            found.append(ModelPrim(path, design, relative, model.position, model.quarters, inner_door))
        return found

    def _write_stage(self, prims: Sequence[ModelPrim], lights: Sequence[Vec3], variant: Variant) -> Path:
        path = self._scene / f'start_result_{variant}.usd'
        write_stage(path, prims, lights, variant)
        return path

    def _link(self, path: Path) -> None:
        """A link to what has the same name in the folder of the home."""
        target = os.path.relpath(self._folder / path.name, path.parent)
        if self._links == 'symlink':
            path.symlink_to(target)
        else:
            path.write_text(target)

    def _hash(self, what: object) -> str:
        return hashlib.md5(f'{self._size}/{self._seed}/{what}'.encode()).hexdigest()


def _use(part: Part, number: int) -> str:
    """Return the key of a material in a design: the role of the part, but each book has its own."""
    return f'{part.role}_{number}' if part.role == 'paper' else part.role


def _uses(design: Design) -> dict[str, str]:
    """The materials that a design needs: their uses, with their roles."""
    return {_use(part, k): part.role for k, part in enumerate(design.parts)}


def _furnish(size: HomeSize, seed: int) -> tuple[Plan, Furnishing]:
    rng = np.random.default_rng([seed, 0])
    plan = plan_rooms(rng, size.extent, size.rooms, size.shells, size.windows)
    furnishing = Furnishing(rng, plan, size, seed)
    furnishing.furnish()
    return plan, furnishing


def _refine(furnishing: Furnishing, triangles: int) -> list[Design]:
    """All designs at the detail with which the models have about so many triangles."""
    catalog, uses = furnishing.catalog, Counter(placed.design for placed in furnishing.placed)
    low, high = _DETAILS
    tried: dict[float, list[Design]] = {}
    for _ in range(7):
        detail = (low + high) / 2
        tried[detail] = [catalog.make(index, detail) for index in range(len(catalog.designs))]
        too_many = _triangles(tried[detail], uses) > triangles
        low, high = (low, detail) if too_many else (detail, high)
    return min(tried.values(), key=lambda designs: abs(_triangles(designs, uses) - triangles))


def _triangles(designs: Sequence[Design], uses: Mapping[int, int]) -> int:
    return sum(design.triangles * uses[index] for index, design in enumerate(designs))


def _placed_model(prim: ModelPrim, placed: Placed, file: Path) -> PlacedModel:
    low, high = placed_box(prim.design.bounds, placed)
    return PlacedModel(
        path=prim.path,
        category=prim.design.category,
        scope=prim.design.scope,
        file=file,
        position=prim.position,
        yaw=np.pi / 2 * prim.quarters,
        low=vec3(low),
        high=vec3(high),
        movable=prim.design.category in MOVABLE,
        joints=tuple(f'{prim.path}/Instance/Group_{j.group:02}/joint_{j.group:02}' for j in prim.design.joints),
        active=not prim.inner_door,
    )


def _spaces(plan: Plan, prims: Sequence[ModelPrim], placed: Sequence[Placed]) -> list[FreeSpace]:
    """Return the free spaces: through doorways, and in and below furniture."""
    doors = {prim.position[:2]: prim.path for prim in prims if prim.design.category == 'door'}
    found = []
    for opening in plan.doorways:
        low, high = opening.footprint(CLEAR - 0.1)
        low, high = (*(low + 0.005), 0.005), (*(high - 0.005), opening.top - 0.005)
        found.append(_space('doorway', low, high, doors[opening.centre], opening.rooms))
    for prim, place in zip(prims, placed, strict=True):
        for space in prim.design.spaces:
            low, high = placed_box(np.array([space.low, space.high]), place)
            found.append(_space(space.kind, low, high, prim.path, (place.room,)))
    return found


def _space(kind: SpaceKind, low: Sequence[float], high: Sequence[float], model: str, rooms: Sequence[int]) -> FreeSpace:
    return FreeSpace(kind, vec3(low), vec3(high), model, tuple(rooms))


def _free_place(plan: Plan, prims: Sequence[ModelPrim], placed: Sequence[Placed]) -> Vec3:
    """The place on the floor that is farthest from everything, looking to the nearest doorway of its room."""
    boxes = np.array(
        [
            placed_box(prim.design.bounds, place)[:, :2]
            for prim, place in zip(prims, placed, strict=True)
            if prim.design.scope in ('Furniture', 'Animation') and place.position[2] < HEIGHT / 2
        ]
    )
    best = (0.0, (0.0, 0.0, 0.0))
    for k, room in enumerate(plan.rooms):
        ways = [opening for opening in plan.doorways if k in opening.rooms]
        xs, ys = (np.arange(room.low[axis], room.high[axis], _STEP) for axis in (0, 1))
        points = np.stack(np.meshgrid(xs, ys, indexing='ij'), axis=-1).reshape(-1, 1, 2)
        away = np.maximum(np.maximum(boxes[:, 0] - points, points - boxes[:, 1]), 0)
        clear = np.linalg.norm(away, axis=-1).min(axis=1)
        to_walls = np.minimum(points - room.low, room.high - points).min(axis=(1, 2))
        clear = np.minimum(clear, to_walls)
        point = points[int(np.argmax(clear)), 0]
        nearest = min((np.subtract(way.centre, point) for way in ways), key=np.linalg.norm)
        yaw = float(np.arctan2(nearest[1], nearest[0]))
        best = max(best, (float(clear.max()), vec3([*point, yaw])))
    return best[1]
