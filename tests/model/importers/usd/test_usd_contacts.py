"""Friction, restitution and hardness of things from USD, against analytic values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from internutopia.model.compilation import compile_scene
from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import load_spec
from internutopia.model.importers.usd import load_with_warnings
from internutopia.model.importers.usd.collisions import MAX_PAIRS
from internutopia.model.spec import ObjectSpec, SceneSpec

G = 9.81
STEPS = [1 / 60, 1 / 120, 1 / 240, 1 / 500]
SHAPES = {'Sphere': 'double radius = 0.1', 'Cube': 'double size = 0.2'}


def material(name: str = 'stuff', modes: dict[str, str] | None = None, **values: float) -> str:
    given = [f'float physics:{key} = {value}' for key, value in values.items()]
    given += [f'uniform token physxMaterial:{key}CombineMode = "{mode}"' for key, mode in (modes or {}).items()]
    lines = '\n'.join(given)
    return f'\ndef Material "{name}" (prepend apiSchemas = ["PhysicsMaterialAPI", "PhysxMaterialAPI"]) {{\n{lines}\n}}'


def thing(name: str, height: float, of: str = 'stuff', kind: str = 'Cube', inside: str = '', x: float = 0.0) -> str:
    """A body of 0.2 m and 1 kg, its lowest point at a height."""
    return f"""
    def {kind} "{name}" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI", "MaterialBindingAPI"]
    ) {{
        {SHAPES[kind]}
        float physics:mass = 1
        rel material:binding:physics = </World/{of}>
        double3 xformOp:translate = ({x}, 0, {height + 0.1})
        uniform token[] xformOpOrder = ["xformOp:translate"]
        {inside}
    }}"""


def ground(of: str = 'stuff') -> str:
    bound = f'rel material:binding:physics = </World/{of}>'
    return f'def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {{\n{bound}\n}}'


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a stage of the prim `/World` with these children."""

    def write(text: str) -> Path:
        path = tmp_path / 'stage.usda'
        path.write_text(
            f'#usda 1.0\n(defaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Z")\ndef "World" {{\n{text}\n}}\n'
        )
        return path

    return write


@pytest.fixture
def load(write: Callable[[str], Path]) -> Callable[..., mujoco.MjModel]:
    """Loads a stage as a scene, with objects beside it."""

    def load(text: str, timestep: float = 1 / 240, objects: tuple[ObjectSpec, ...] = ()) -> mujoco.MjModel:
        return compile_scene(SceneSpec(str(write(text)), objects=objects), timestep).model

    return load


def peaks(model: mujoco.MjModel, seconds: float) -> list[float]:
    """Heights [m] that the first body rises to after each bounce; its first height is the first of them."""
    data = mujoco.MjData(model)
    heights = [data.qpos[2] - 0.1]
    tops = heights[:]
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
        heights.append(data.qpos[2] - 0.1)
        if len(heights) > 2 and heights[-3] < heights[-2] >= heights[-1]:
            tops.append(heights[-2])
    return tops


@pytest.mark.parametrize('timestep', STEPS)
@pytest.mark.parametrize('kind', SHAPES)
def test_a_bounce_is_as_high_as_restitution_says(load, kind, timestep):
    for restitution, fall in [(0.3, 1.0), (0.5, 0.4), (0.5, 1.0), (0.5, 2.0), (0.8, 1.0), (1.0, 1.0)]:
        text = ground() + thing('ball', fall, kind=kind) + material(restitution=restitution)
        tops = peaks(load(text, timestep), 2.5 * np.sqrt(2 * fall / G))
        assert tops[1] == pytest.approx(restitution**2 * fall, rel=0.1), (restitution, fall)
        assert max(tops) <= fall + 1e-9


@pytest.mark.parametrize('timestep', STEPS)
def test_the_second_bounce_follows_from_the_first_and_then_things_rest(load, timestep):
    model = load(ground() + thing('box', 1.0) + material(restitution=0.7), timestep)
    tops = peaks(model, 10.0)
    assert tops[1:4] == pytest.approx([0.7**2, 0.7**4, 0.7**6], rel=0.1)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, round(10.0 / timestep))
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-3) and abs(data.qvel).max() < 1e-3


def test_a_box_that_tumbles_and_bounces_gains_no_energy(load):
    model = load(ground() + thing('box', 1.0) + material(restitution=1.0, dynamicFriction=0.6, staticFriction=0.6))
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    data.qpos[3:7], data.qvel[:] = (0.9, 0.3, 0.2, 0.1), (1, 0, 0, 3, -5, 2)
    energies = []
    for _ in range(240 * 10):
        mujoco.mj_step(model, data)
        energies.append(data.energy.sum())
    assert max(energies) < energies[0] + 0.02 * G  # J, of 11: what 2 cm of height are worth


def test_one_that_bounces_does_so_on_what_has_no_material(load):
    bare = 'def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\n}'
    assert peaks(load(bare + thing('box', 1.0) + material(restitution=0.5)), 1.1)[1] == pytest.approx(0.25, rel=0.1)


def test_restitution_above_one_counts_as_one(write):
    path = write(ground() + thing('box', 1.0) + material(restitution=1.5))
    spec, warnings = load_with_warnings(path, LoadOptions(timestep=1 / 240))
    assert max(peaks(spec.compile(), 2.0)) <= 1.0
    assert any(line.startswith('restitution above 1 is treated as 1: /World/stuff') for line in warnings)


def test_things_of_other_files_bounce_on_a_ground_that_does(load):
    drop = ObjectSpec('box', scale=(0.2, 0.2, 0.2), mass=1.0)
    model = load(ground() + material(restitution=0.6, dynamicFriction=0.5), objects=(drop,))
    data = mujoco.MjData(model)
    data.qpos[2] = 1.1
    heights = []
    for _ in range(200):
        mujoco.mj_step(model, data)
        heights.append(data.qpos[2] - 0.1)
    assert max(heights[120:]) == pytest.approx(0.6**2, rel=0.1)  # it hits the ground in step 109


# --- two materials ---------------------------------------------------------------------------------------------------


def sliding(model: mujoco.MjModel) -> float:
    """Friction coefficient of what slides, from how it slows down."""
    data = mujoco.MjData(model)
    data.qvel[0] = 3.0
    mujoco.mj_step(model, data, 120)
    return (3.0 - data.qvel[0]) / (120 * model.opt.timestep * G)


@pytest.mark.parametrize(
    ('one', 'other', 'expected'),
    [
        ({}, {}, 0.4),  # the mean, as PhysX if nothing is said
        ({'friction': 'min'}, {}, 0.2),
        ({'friction': 'multiply'}, {'friction': 'min'}, 0.12),
        ({'friction': 'multiply'}, {'friction': 'max'}, 0.6),
        ({'friction': 'average'}, {'friction': 'average'}, 0.4),
    ],
)
def test_friction_combines_as_physx_says(load, one, other, expected):
    text = ground('slippery') + thing('box', 0.0, 'rough')
    text += material('slippery', one, dynamicFriction=0.2, staticFriction=0.2)
    text += material('rough', other, dynamicFriction=0.6, staticFriction=0.6)
    assert sliding(load(text)) == pytest.approx(expected, rel=0.1)


def test_a_product_counts_for_one_material_too(load):
    text = ground() + thing('box', 0.0)
    modes = {'friction': 'multiply', 'restitution': 'multiply'}
    model = load(text + material(modes=modes, dynamicFriction=0.5, staticFriction=0.5, restitution=0.5))
    assert sliding(model) == pytest.approx(0.25, rel=0.1)
    text = ground() + thing('box', 1.0)
    assert peaks(load(text + material(modes=modes, restitution=0.7)), 1.1)[1] == pytest.approx(0.49**2, rel=0.1)


def test_restitution_combines_as_physx_says(load):
    text = ground('dead') + thing('box', 1.0, 'lively') + material('dead') + material('lively', restitution=0.8)
    assert peaks(load(text), 1.1)[1] == pytest.approx(0.4**2, rel=0.1)
    greater = material('lively', {'restitution': 'max'}, restitution=0.8)
    text = ground('dead') + thing('box', 1.0, 'lively') + material('dead') + greater
    assert peaks(load(text), 1.5)[1] == pytest.approx(0.8**2, rel=0.1)


def test_only_what_could_touch_becomes_a_pair(load):
    joint = '\ndef PhysicsRevoluteJoint "j" {\nrel physics:body0 = </World/a>\nrel physics:body1 = </World/b>\n}'
    text = ground('slippery') + ''.join(thing(name, 0.0, f'of_{name}', x=i) for i, name in enumerate('abc')) + joint
    text += ''.join(
        material(name, dynamicFriction=0.1 * i) for i, name in enumerate(('slippery', 'of_a', 'of_b', 'of_c'))
    )
    model = load(text)
    ends = zip(model.pair_geom1, model.pair_geom2, strict=True)
    pairs = {frozenset(model.geom(geom).name[-1] for geom in pair) for pair in ends}
    assert pairs == {frozenset(pair) for pair in ('da', 'db', 'dc', 'ac', 'bc')}  # 'd': the ground


@pytest.mark.slow
def test_too_many_pairs_are_told_and_the_greater_counts(write):
    count = MAX_PAIRS + 1
    text = ground('slippery') + ''.join(thing(f'b{i}', 0.0, 'rough', x=i) for i in range(count))
    text += material('slippery', dynamicFriction=0.2) + material('rough', dynamicFriction=0.6)
    spec, warnings = load_with_warnings(write(text))
    assert len(spec.pairs) == 0
    assert any(
        line.startswith(f'{count} pairs of colliders have materials of other combine modes') for line in warnings
    )


def test_an_unknown_combine_mode_is_refused(write):
    text = ground() + thing('box', 0.0) + material(modes={'friction': 'median'})
    with pytest.raises(ValueError, match='/World/stuff.*average, min, multiply, max.*median'):
        load_spec(write(text))


# --- hardness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('timestep', [1 / 240, 1 / 500])
def test_a_light_box_bears_a_hundred_times_its_weight(load, timestep):
    heavy = thing('heavy', 0.2).replace('physics:mass = 1', 'physics:mass = 100')
    model = load(ground() + thing('light', 0.0) + heavy + material(), timestep)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, round(4.0 / timestep))
    assert data.qpos[[2, 9]] == pytest.approx([0.1, 0.3], abs=2e-3)


def test_physx_iterations_raise_the_limit_of_the_solver(load):
    text = ground() + thing('box', 0.0, inside='int physxRigidBody:solverPositionIterationCount = {}') + material()
    assert load(text.replace('{}', '160')).opt.iterations == 160
    assert load(text.replace('{}', '4')).opt.iterations == mujoco.MjSpec().option.iterations


def test_parts_of_an_object_are_no_pairs(write):
    rough = material('slippery', dynamicFriction=0.2) + material('rough', dynamicFriction=0.6)
    path = str(write(thing('a', 0.0, 'slippery') + thing('b', 0.2, 'rough') + rough))
    assert compile_scene(SceneSpec(path), 1 / 240).model.npair == 1
    model = compile_scene(SceneSpec(objects=(ObjectSpec('both', path),)), 1 / 240).model
    assert (model.npair, model.nv) == (0, 6)
