"""H1's stance on the built-in model under real physics: it stands, quietly, and survives pushes."""

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

from internutopia_extension.configs.joint_names import H1_GYM_19
from internutopia_extension.controllers import h1_stance
from internutopia_extension.controllers.h1_stance import stance_targets
from internutopia_extension.robots.h1 import H1Robot

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = np.array([H1Robot.home.get(joint, 0.0) for joint in H1_GYM_19])
HOME_HEIGHT = 0.981
FALLEN = 0.7  # m, pelvis height
PUSHES = {'forward': (0.3, 0), 'backward': (-0.3, 0), 'left': (0, 0.3), 'right': (0, -0.3)}


def h1_on_a_plane(frequency: int) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_file(str(REPOSITORY / 'internutopia' / 'assets' / 'robots' / 'h1' / 'h1.xml'))
    spec.option.timestep = 1 / frequency
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.first_body().add_freejoint()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    for joint in H1_GYM_19:
        stiffness, damping = H1Robot.drives.gains(joint)
        drive = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        drive.set_to_position(stiffness)
        drive.biasprm[2] = -damping
    model = spec.compile()
    assert [model.joint(i).name for i in range(1, model.njnt)] == list(H1_GYM_19)
    return model


class Crowd:
    """Several H1, each alone in its world, all balanced by one batched call."""

    def __init__(self, frequency: int, yaws: list[float], height: float = HOME_HEIGHT):
        self.model = h1_on_a_plane(frequency)
        self.datas = [mujoco.MjData(self.model) for _ in yaws]
        for data, yaw in zip(self.datas, yaws, strict=True):
            data.qpos[:] = [0, 0, height, np.cos(yaw / 2), 0, 0, np.sin(yaw / 2), *HOME]

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([data.qpos for data in self.datas]), np.array([data.qvel for data in self.datas])

    def targets(self) -> np.ndarray:
        qpos, qvel = self.state()
        angular = [self.axes(q) @ v for q, v in zip(qpos[:, 3:7], qvel[:, 3:6], strict=True)]  # qvel has body axes
        return stance_targets(qpos[:, 3:7], np.array(angular), qvel[:, :3], qpos[:, 7:], qvel[:, 6:])

    @staticmethod
    def axes(quaternion: np.ndarray) -> np.ndarray:
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, quaternion)
        return matrix.reshape(3, 3)

    def run(self, seconds: float, every: int = 1) -> np.ndarray:
        """Runs with targets renewed at every `every`th step; returns qpos and qvel after each step `(steps, n, 51)`."""
        states = []
        for step in range(round(seconds / self.model.opt.timestep)):
            targets = self.targets() if step % every == 0 else None
            for i, data in enumerate(self.datas):
                if targets is not None:
                    data.ctrl[:] = targets[i]
                mujoco.mj_step(self.model, data)
            states.append(np.concatenate(self.state(), axis=-1))
        return np.array(states)


@pytest.mark.parametrize('frequency', [240, 200])
def test_stands_for_a_minute_without_moving(frequency):
    crowd = Crowd(frequency, [0.0])
    states = crowd.run(60)
    assert np.all(states[..., 2] > 0.95)
    drift = np.linalg.norm(states[..., :2], axis=-1)
    assert drift.max() < 0.05
    quiet = states[10 * frequency :]
    assert np.abs(quiet[..., 26:]).max() < 0.01  # no joint jitters [rad/s]
    assert np.ptp(quiet[..., :3], axis=0).max() < 0.01


@pytest.mark.parametrize('frequency, every', [(240, 1), (200, 4)])
def test_stands_after_untidy_drops(frequency, every):
    """From up to 1.05 m, any heading, a little tilted and moving, joints off: it lands and does not creep away."""
    rng = np.random.default_rng(0)
    crowd = Crowd(frequency, [0.0, 1.0, 2.5, -2.0], 1.05)
    for data in crowd.datas[1:]:
        data.qpos[2] = rng.uniform(0.99, 1.05)
        tilt = np.array([1, *rng.normal(scale=0.01, size=2), 0])
        mujoco.mju_mulQuat(data.qpos[3:7], data.qpos[3:7].copy(), tilt / np.linalg.norm(tilt))
        data.qpos[7:] += rng.normal(scale=0.03, size=19)
        data.qvel[:2] = rng.normal(scale=0.05, size=2)
    states = crowd.run(40, every)
    assert np.all(states[frequency:, :, 2] > 0.93)
    assert np.linalg.norm(states[-1, :, :2] - states[5 * frequency, :, :2], axis=-1).max() < 0.02
    assert np.abs(states[-1, :, 26:]).max() < 0.01


@pytest.mark.parametrize('frequency, every', [(240, 1), (200, 1), (200, 4)])
def test_survives_pushes(frequency, every):
    yaws = [0.0, 0.7, 3.0, -1.0]
    crowd = Crowd(frequency, yaws)
    crowd.run(2, every)
    for data, yaw, (forward, left) in zip(crowd.datas, yaws, PUSHES.values(), strict=True):
        data.qvel[0] += np.cos(yaw) * forward - np.sin(yaw) * left
        data.qvel[1] += np.sin(yaw) * forward + np.cos(yaw) * left
    states = crowd.run(8, every)
    fallen = [push for push, height in zip(PUSHES, states[..., 2].min(axis=0), strict=True) if height < FALLEN]
    assert not fallen
    assert np.abs(states[-1, :, 26:]).max() < 0.1


def test_constant_targets_fall():
    """What the feedback is for: without it the robot does not stay up."""
    model = h1_on_a_plane(240)
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, HOME_HEIGHT, 1, 0, 0, 0, *HOME]
    data.ctrl[:] = HOME
    mujoco.mj_step(model, data, 240 * 5)
    assert data.qpos[2] < FALLEN


def test_batches_are_stacks_of_single_calls():
    rng = np.random.default_rng(0)
    orientation = rng.normal(size=(2, 3, 4))
    orientation /= np.linalg.norm(orientation, axis=-1, keepdims=True)
    arguments = [orientation, *(rng.normal(size=(2, 3, k)) for k in (3, 3, 19, 19))]
    together = stance_targets(*arguments)
    assert together.shape == (2, 3, 19)
    for index in np.ndindex(2, 3):
        np.testing.assert_array_equal(together[index], stance_targets(*(argument[index] for argument in arguments)))


def test_targets_do_not_depend_on_heading():
    rng = np.random.default_rng(1)
    tilt, yaw = np.array([0.99, 0.05, 0.12, 0.0]), 1.3
    tilt /= np.linalg.norm(tilt)
    turn = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
    turned = np.empty(4)
    mujoco.mju_mulQuat(turned, turn, tilt)
    angular, linear, joints, rates = (rng.normal(size=k) for k in (3, 3, 19, 19))
    expected = stance_targets(tilt, angular, linear, joints, rates)
    axes = Crowd.axes(turn)
    np.testing.assert_allclose(
        stance_targets(turned, axes @ angular, axes @ linear, joints, rates), expected, atol=1e-12
    )


def test_a_fallen_robot_gets_finite_targets():
    for orientation in ([0.70710678, 0, 0.70710678, 0], [0, 1, 0, 0], [0.70710678, 0, -0.70710678, 0]):
        targets = stance_targets(np.array(orientation), np.ones(3) * 20, np.ones(3) * 20, HOME, np.zeros(19))
        assert np.all(np.isfinite(targets))
        moving = [i for i, name in enumerate(H1_GYM_19) if 'ankle' not in name]
        assert np.abs(targets[moving] - HOME[moving]).max() < 1.0


def test_constants_are_those_of_the_model():
    path = REPOSITORY / 'tools' / 'tune_h1_stance.py'
    module_spec = importlib.util.spec_from_file_location('tune_h1_stance', path)
    assert module_spec and module_spec.loader
    tool = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(tool)
    for name, computed in tool.constants().items():
        written = getattr(h1_stance, name)
        if isinstance(computed, dict):
            assert written == pytest.approx(computed, rel=1e-3)
        else:
            np.testing.assert_allclose(written, computed, rtol=1e-3)
