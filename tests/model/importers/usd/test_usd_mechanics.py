"""Masses, collision filters and errors of bodies and joints in USD files, against analytic values."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import combinations

import mujoco
import numpy as np
import pytest
from usd_text import ARM, EXACT, HINGE, body, joint, posed, turned

from internutopia.model.importers.load import load_spec

# Masses


@pytest.mark.parametrize(
    ('given', 'mass', 'center', 'inertia'),
    [
        ('', 1.0, (0, 0, 0), [1 / 600] * 3),  # a cube of 0.1 m, 1000 kg/m3
        ('float physics:density = 500', 0.5, (0, 0, 0), [1 / 1200] * 3),
        ('float physics:mass = 3', 3.0, (0, 0, 0), [3 / 600] * 3),
        ('float physics:mass = 0', 1.0, (0, 0, 0), [1 / 600] * 3),  # the schema's word for: not given
        ('float3 physics:diagonalInertia = (3, 4, 5)', 1.0, (0, 0, 0), [5, 4, 3]),
        ('point3f physics:centerOfMass = (0.1, 0, 0)', 1.0, (0.1, 0, 0), [1 / 600 + 0.01, 1 / 600 + 0.01, 1 / 600]),
    ],
)
def test_what_mass_api_leaves_open_comes_from_the_colliders(load, given, mass, center, inertia):
    model = load(body('b', given))
    assert float(model.body('/World/b').mass[0]) == pytest.approx(mass, rel=1e-5)
    np.testing.assert_allclose(model.body('/World/b').ipos, center, atol=EXACT)
    np.testing.assert_allclose(sorted(model.body('/World/b').inertia, reverse=True), inertia, rtol=1e-4)


def test_principal_axes_and_units_of_inertia(load):
    given = f"""float physics:mass = 10
        float3 physics:diagonalInertia = (1, 2, 2.5)
        quatf physics:principalAxes = {turned('Z', 90)}
        point3f physics:centerOfMass = (1, 0, 0)"""
    model = load(body('b', given), metres=0.1, kilograms=2.0)
    data = posed(model)
    found = data.body('/World/b')
    axes = found.ximat.reshape(3, 3)
    tensor = axes @ np.diag(model.body('/World/b').inertia) @ axes.T
    np.testing.assert_allclose(tensor, np.diag([2, 1, 2.5]) * 2 * 0.01, atol=1e-6)
    np.testing.assert_allclose(found.xipos, [0.1, 0, 0], atol=EXACT)
    assert float(model.body('/World/b').mass[0]) == pytest.approx(20)


def test_a_body_without_shapes_is_a_ball(load, warnings):
    model = load(body('b', 'float physics:mass = 2', kind='Xform') + body('c', kind='Xform'))
    np.testing.assert_allclose(model.body('/World/b').inertia, 0.4 * 2 * 0.1**2, rtol=EXACT)
    assert float(model.body('/World/c').mass[0]) == 1.0
    assert any('/World/c' in warning and '1 kg' in warning for warning in warnings())


def test_a_body_without_gravity_floats(load):
    model = load(body('b', 'bool physxRigidBody:disableGravity = 1'))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    np.testing.assert_allclose(data.qvel, 0, atol=1e-9)


def test_the_gravity_of_the_scene(load):
    scene = """def PhysicsScene "scene" {
        float physics:gravityMagnitude = 162
        vector3f physics:gravityDirection = (0, 3, 0)
    }"""
    np.testing.assert_allclose(load(scene, metres=0.01).opt.gravity, [0, 1.62, 0], atol=1e-6)


# Contacts


def colliding(model: mujoco.MjModel) -> set[frozenset[str]]:
    data = posed(model)
    return {frozenset(model.geom(int(geom)).name[7:] for geom in contact.geom) for contact in data.contact}


def pairs(*names: Iterable[str]) -> set[frozenset[str]]:
    return {frozenset(name) for name in names}


def test_filtered_pairs_pass_through_each_other(load):
    filtered = body('a', 'rel physics:filteredPairs = </World/b>', ', "PhysicsFilteredPairsAPI"')
    assert colliding(load(body('a') + body('b') + body('c'))) == pairs('ab', 'ac', 'bc')
    assert colliding(load(filtered + body('b') + body('c'))) == pairs('ac', 'bc')
    static = '\ndef Cube "b" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\ndouble size = 0.1\n}'
    assert colliding(load(filtered + static + body('c'))) == pairs('ac', 'bc')


def test_collision_groups(load):
    def group(name: str, members: str, filtered: str) -> str:
        return f"""
        def PhysicsCollisionGroup "{name}" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{
            rel collection:colliders:includes = [{members}]
            rel physics:filteredGroups = [{filtered}]
        }}"""

    groups = group('one', '</World/a>, </World/b>', '</World/one>, </World/two>') + group('two', '</World/c>', '')
    model = load(''.join(map(body, 'abcd')) + groups)
    assert colliding(model) == pairs('ad', 'bd', 'cd')


@pytest.mark.slow
def test_groups_of_many_models(load, warnings):
    """Two parts of each of 40 models pass through each other and the wall: more groups than there are bits."""
    ends = [f'{letter}{i}' for i in range(40) for letter in 'ab']
    wall = '\ndef Cube "wall" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\ndouble size = 0.1\n}'
    groups = [('walls', 'wall', [])]
    for i in range(40):
        groups += [(f'ga{i}', f'a{i}', [f'gb{i}', 'walls']), (f'gb{i}', f'b{i}', ['walls'])]
    text = ''.join(
        f"""
        def PhysicsCollisionGroup "{name}" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{
            rel collection:colliders:includes = [</World/{member}>]
            rel physics:filteredGroups = [{', '.join(f'</World/{each}>' for each in filtered)}]
        }}"""
        for name, member, filtered in groups
    )
    model = load(''.join(map(body, ends)) + wall + text + body('free'))
    names = {model.geom(i).name[7:] for i in range(model.ngeom)}
    apart = pairs(*((f'a{i}', f'b{i}') for i in range(40)), *((end, 'wall') for end in ends))
    assert colliding(model) == {frozenset(pair) for pair in combinations(names, 2)} - apart
    assert not warnings()


def test_self_collision_is_switched_off(load):
    joints = ''.join(joint('Revolute', f'j{one}', f'/World/{one}', f'/World/{other}') for one, other in ('ab', 'bc'))
    text = ''.join(map(body, 'abcd')) + joints
    root = '"PhysicsArticulationRootAPI", "PhysxArticulationAPI"'
    assert colliding(load(text, apis=root)) == pairs('ac', 'ad', 'bd', 'cd')  # those that are jointed never collide
    off = 'bool physxArticulation:enabledSelfCollisions = 0\n'
    assert colliding(load(off + text, apis=root)) == pairs('ad', 'bd', 'cd')


def material(**values: float) -> str:
    given = '\n'.join(f'float physics:{name} = {value}' for name, value in values.items())
    return f'\ndef Material "stuff" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {{\n{given}\n}}'


BOUND = ('rel material:binding:physics = </World/stuff>', ', "MaterialBindingAPI"')


def test_the_density_of_a_material_counts_last(load):
    text = body('b', *BOUND) + material(density=200)
    assert float(load(text).body('/World/b').mass[0]) == pytest.approx(0.2)
    text = body('b', BOUND[0] + '\nfloat physics:density = 300', BOUND[1]) + material(density=200)
    assert float(load(text).body('/World/b').mass[0]) == pytest.approx(0.3)


# Errors and warnings


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (body('b', 'float physics:mass = -1'), r'/World/b: physics:mass must be positive and finite, got -1'),
        (
            body('b', 'float3 physics:diagonalInertia = (1, -1, 1)'),
            '/World/b: physics:diagonalInertia must be positive',
        ),
        (body('b', at=(float('nan'), 0, 0)), '/World/b: the transform is not finite'),
        (
            joint('Fixed', 'j', '/World/nowhere', None),
            '/World/j: body0 must be a rigid body, but /World/nowhere does not',
        ),
        (
            body('b') + '\ndef Scope "s" {\n}\n' + joint('Fixed', 'j', '/World/b', '/World/s'),
            '/World/s is no prim with a pose',
        ),
        (
            joint('Fixed', 'j', '/World', None),
            '/World/j: this joint needs a rigid body.*body0 = /World and body1 = none',
        ),
        (ARM + HINGE.replace('stiffness = 2', 'stiffness = -2'), 'hinge: drive:angular:physics:stiffness cannot be -2'),
        (
            ARM + HINGE.replace('localPos1 = (-0.5, 0, 0)', 'localPos1 = (nan, 0, 0)'),
            'hinge: localPos1 and localRot1 must',
        ),
    ],
)
def test_broken_physics_names_file_and_prim(load, text, message):
    with pytest.raises(ValueError, match=rf'stage\.usda: .*{message}'):
        load(text)


def test_nothing_is_left_of_a_cyclic_reference(tmp_path):
    path = tmp_path / 'loop.usda'
    path.write_text('#usda 1.0\ndef "a" (references = @loop.usda@</b>) {}\ndef "b" (references = @loop.usda@</a>) {}\n')
    with pytest.raises(ValueError, match=r'loop\.usda: nothing in it could be read: .*Cycle'):
        load_spec(path)


def test_what_is_dropped_is_warned_of_once_by_prim(load, warnings, caplog):
    slides = joint('Prismatic', 'slide', '/World/base', '/World/link', 'bool physics:excludeFromArticulation = 1')
    off = joint('Fixed', 'off', None, '/World/base', 'bool physics:jointEnabled = 0')
    weak = joint('Fixed', 'weak', None, '/World/base', 'float physics:breakForce = 5')
    with caplog.at_level(logging.WARNING, 'internutopia'):
        load(ARM + slides + off + weak)
    assert warnings() == [
        'switched off joint: /World/off',
        'physics:breakForce has no counterpart: /World/weak',
        'joint that slides and closes a loop: /World/slide',
    ]
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.split('\n- ')[1:] == warnings()
