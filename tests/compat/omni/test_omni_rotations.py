"""Rotations under the names of Isaac Sim follow its conventions: scalar first, Euler angles about x, y, z."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from internutopia.compat.omni import rotations

EXACT = 1e-12  # double precision, a few operations
NEAR_SINGULAR = 1e-6  # angles from a matrix lose half of the digits near +-90 degrees about y

angles = arrays(np.float64, (4, 3), elements=st.floats(-10, 10))
units = arrays(np.float64, (4, 4), elements=st.floats(-1, 1))


def reference(euler: Any, extrinsic: bool, degrees: bool = False) -> Any:
    return Rotation.from_euler('xyz' if extrinsic else 'XYZ', euler, degrees=degrees)


def scalar_first(rotation: Any) -> np.ndarray:
    return np.roll(rotation.as_quat(), 1, axis=-1)


def assert_same_rotations(quats: np.ndarray, expected: np.ndarray, atol: float = EXACT) -> None:
    np.testing.assert_allclose(np.abs(np.sum(quats * expected, axis=-1)), 1.0, atol=atol)


@pytest.mark.parametrize('degrees', [False, True])
@pytest.mark.parametrize('extrinsic', [True, False])
@given(angles)
def test_euler_angles_to_quaternions_and_matrices(extrinsic, degrees, euler):
    given_angles = np.degrees(euler) if degrees else euler
    expected = reference(euler, extrinsic)
    assert_same_rotations(rotations.euler_angles_to_quats(given_angles, degrees, extrinsic), scalar_first(expected))
    matrix = rotations.euler_to_rot_matrix(given_angles[0], degrees, extrinsic)
    np.testing.assert_allclose(matrix, expected.as_matrix()[0], atol=EXACT)
    quat = rotations.euler_angles_to_quat(given_angles[0], degrees, extrinsic)
    assert (quat.shape, quat.dtype) == ((4,), np.float64)
    np.testing.assert_allclose(quat, rotations.euler_angles_to_quats(given_angles, degrees, extrinsic)[0], atol=EXACT)


@pytest.mark.parametrize('degrees', [False, True])
@pytest.mark.parametrize('extrinsic', [True, False])
@given(angles)
def test_quaternions_and_matrices_to_euler_angles(extrinsic, degrees, euler):
    euler[:, 1] = np.clip(euler[:, 1], -1.5, 1.5)
    rotation = reference(euler, extrinsic)
    expected = rotation.as_euler('xyz' if extrinsic else 'XYZ', degrees=degrees)
    turns = 360.0 if degrees else 2 * np.pi
    for found in (
        rotations.quats_to_euler_angles(scalar_first(rotation), degrees, extrinsic),
        [rotations.quat_to_euler_angles(quat, degrees, extrinsic) for quat in scalar_first(rotation)],
        [rotations.matrix_to_euler_angles(matrix, degrees, extrinsic) for matrix in rotation.as_matrix()],
    ):
        difference = (np.array(found) - expected + turns / 2) % turns - turns / 2  # -180 and 180 degrees are the same
        np.testing.assert_allclose(difference, 0.0, atol=1e-10 * turns)


@pytest.mark.parametrize('extrinsic', [True, False])
@given(angles, st.sampled_from([-1, 1]), st.sampled_from([0.0, 1e-12, 1e-8, 1e-4]))
def test_angles_found_near_the_singularity_give_the_rotation_back(extrinsic, euler, side, off):
    euler[:, 1] = side * (np.pi / 2 - off)
    rotation = reference(euler, extrinsic)
    found = rotations.quats_to_euler_angles(scalar_first(rotation), True, extrinsic)
    np.testing.assert_allclose(
        reference(found, extrinsic, degrees=True).as_matrix(), rotation.as_matrix(), atol=NEAR_SINGULAR
    )


@given(units)
def test_quaternions_and_matrices(quats):
    assume((np.linalg.norm(quats, axis=-1) > 1e-3).all())
    expected = Rotation.from_quat(np.roll(quats, -1, axis=-1)).as_matrix()
    np.testing.assert_allclose(rotations.quats_to_rot_matrices(quats), expected, atol=EXACT)
    np.testing.assert_allclose(rotations.quat_to_rot_matrix(quats[0]), expected[0], atol=EXACT)
    length = np.linalg.norm(quats, axis=-1, keepdims=True)
    assert_same_rotations(rotations.rot_matrices_to_quats(expected), quats / length)
    transform = np.eye(4)
    transform[:3, :3] = expected[0]
    assert_same_rotations(rotations.rot_matrix_to_quat(transform), quats[0] / length[0])


@given(arrays(np.float64, (4, 3), elements=st.floats(-3, 3)), st.sampled_from([1.0, 1e-9, 0.0]))
def test_rotation_vectors(vectors, size):
    rotation = Rotation.from_rotvec(size * vectors)
    quats = rotations.rotvecs_to_quats(size * vectors)
    assert_same_rotations(quats, scalar_first(rotation))
    np.testing.assert_allclose(rotations.rotvecs_to_quats(np.degrees(size * vectors), degrees=True), quats, atol=EXACT)
    assume((np.linalg.norm(size * vectors, axis=-1) < np.pi - 1e-3).all())  # beyond, the other way round is shorter
    np.testing.assert_allclose(rotations.quats_to_rotvecs(-quats), size * vectors, atol=EXACT)


def test_known_answers():
    half = np.sqrt(0.5)
    np.testing.assert_allclose(rotations.euler_angles_to_quats(np.array([0, 90, 0]), degrees=True), [half, 0, half, 0])
    np.testing.assert_allclose(rotations.quat_to_euler_angles([half, 0, 0, half]), np.array([0, 0, np.pi / 2]))
    both = [90, 0, 90]  # extrinsic: first about x, then about z
    np.testing.assert_allclose(rotations.euler_to_rot_matrix(both, degrees=True) @ [0, 1, 0], [0, 0, 1], atol=EXACT)
    np.testing.assert_allclose(
        rotations.euler_to_rot_matrix(both, degrees=True, extrinsic=False) @ [0, 1, 0], [-1, 0, 0], atol=EXACT
    )
    np.testing.assert_array_equal(rotations.quat_to_rot_matrix(np.zeros(4)), np.eye(3))


def test_single_precision_and_leading_axes():
    quats = np.array([[[1, 0, 0, 0], [0.6, 0, 0.8, 0]]], np.float32)
    assert rotations.quats_to_euler_angles(quats).shape == (1, 2, 3)
    assert rotations.quats_to_rot_matrices(quats).shape == (1, 2, 3, 3)
    np.testing.assert_array_equal(rotations.wxyz2xyzw(quats)[0, 1], np.array([0, 0.8, 0, 0.6], np.float32))
    np.testing.assert_array_equal(rotations.xyzw2wxyz(rotations.wxyz2xyzw(quats)), quats)
    assert rotations.xyzw2wxyz(quats).dtype == np.float32
    assert rotations.deg2rad(np.array([180.0])) == np.pi
    assert rotations.rad2deg(np.array([np.pi])) == 180.0


def test_tensors_on_request():
    torch = pytest.importorskip('torch')
    assert torch.equal(rotations.xyzw2wxyz(np.arange(4.0), ret_torch=True), torch.tensor([3.0, 0.0, 1.0, 2.0]).double())


def test_types_of_usd():
    gf: ModuleType = pytest.importorskip('pxr.Gf')
    np.testing.assert_array_equal(rotations.gf_quat_to_np_array(gf.Quatf(1, 2, 3, 4)), [1, 2, 3, 4])
    np.testing.assert_array_equal(rotations.gf_quat_to_tensor(gf.Quatd(1, 2, 3, 4)), [1, 2, 3, 4])
    turned = rotations.gf_rotation_to_np_array(gf.Rotation(gf.Vec3d(0, 0, 1), 90))
    np.testing.assert_allclose(turned, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    quat = rotations.gf_quat_to_np_array(
        rotations.lookat_to_quatf(gf.Vec3f(0, 0, 2), gf.Vec3f(3, 0, 2), gf.Vec3f(0, 0, 1))
    )
    matrix = rotations.quat_to_rot_matrix(quat)
    np.testing.assert_allclose(matrix @ [0, 0, -1], [1, 0, 0], atol=1e-6)  # single precision
    np.testing.assert_allclose(matrix @ [0, 1, 0], [0, 0, 1], atol=1e-6)
