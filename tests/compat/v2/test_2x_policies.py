"""Walking policies in the files of an asset folder of 2.x: run in the form of 2.x's controllers, or replaced.

Networks here are made up: what is checked is each number that they get and what becomes of each that they give, against
the arithmetic of InternUtopia 2.2.1 written out for one env.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markers import slow_but
from policy_files import write_onnx

from internutopia import Config, Env, SimConfig
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs import joint_names
from internutopia_extension.configs.robots import aliengo, g1, gr1, h1
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

SPEEDS = (0.6, -0.3, 0.4)  # forward, lateral, rotation
FILES = {
    'h1': 'robots/h1/policy/move_by_speed/h1_loco_model_20000.pt',
    'aliengo': 'robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt',
    'g1': 'robots/g1/policy/move_by_speed/g1_15000.onnx',
    'gr1': 'robots/gr1/policy/move_by_speed/gr1_policy.onnx',
}
SIZES = {'h1': (471, 19), 'aliengo': (270, 12), 'g1': (546, 12), 'gr1': (636, 12)}
ROBOTS: dict[str, tuple[Any, Any]] = {
    'h1': (h1.H1RobotCfg(position=(0, 0, 1.05)), h1.move_by_speed_cfg),
    'aliengo': (aliengo.AliengoRobotCfg(position=(0, 0, 0.5)), aliengo.move_by_speed_cfg),
    'g1': (g1.G1RobotCfg(position=(0, 0, 0.8)), g1.move_by_speed_cfg),
    'gr1': (gr1.GR1RobotCfg(position=(0, 0, 0.95)), gr1.move_by_speed_cfg),
}
CLOSE = 2e-4  # of a joint target [rad]: single precision, through a network with weights of about 0.05
Network = Callable[[np.ndarray], np.ndarray]


def write_checkpoint(file: Path, sizes: list[int], estimator: list[int] | None = None) -> Network:
    """Write what rsl_rl writes, of an actor with ELU between its layers, perhaps behind an estimator; returns it."""
    import torch

    torch.manual_seed(5)

    def mlp(sizes: list[int]) -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        for a, b in zip(sizes, sizes[1:], strict=False):
            layers += [torch.nn.Linear(a, b), torch.nn.ELU()]
        return torch.nn.Sequential(*layers[:-1])

    actor, critic = mlp(sizes), mlp([sizes[0], 4, 1])
    encoder = None if estimator is None else mlp(estimator)
    state = {f'actor.{name}': value for name, value in actor.state_dict().items()}
    state |= {f'critic.{name}': value for name, value in critic.state_dict().items()} | {'std': torch.ones(sizes[-1])}
    if encoder is not None:
        state |= {f'estimator.encoder.{name}': value for name, value in encoder.state_dict().items()}
    torch.save({'model_state_dict': state, 'iter': 20000, 'infos': None}, file)

    def run(observation: np.ndarray) -> np.ndarray:
        rows = torch.tensor(observation[None], dtype=torch.float32)
        if encoder is not None:
            parts = encoder(rows)
            rows = torch.cat([rows[:, :45], parts[:, :3], torch.nn.functional.normalize(parts[:, 3:], dim=-1)], dim=-1)
        return actor(rows)[0].detach().numpy()

    return run


def write_linear_onnx(file: Path, inputs: int, outputs: int) -> Network:
    """Write a network of one layer that says nothing about itself; returns it."""
    weights = np.random.default_rng(5).uniform(-0.05, 0.05, (inputs, outputs)).astype(np.float32)
    write_onnx(file, [(weights, np.zeros(outputs, np.float32))])
    return lambda observation: observation.astype(np.float32) @ weights


def write_policy(robot: str, folder: Path) -> Network:
    file = folder / FILES[robot]
    file.parent.mkdir(parents=True)
    inputs, outputs = SIZES[robot]
    if robot == 'h1':
        return write_checkpoint(file, [inputs, 32, 16, outputs])
    if robot == 'aliengo':
        return write_checkpoint(file, [45 + 3 + 16, 32, outputs], [inputs, 24, 3 + 16])
    return write_linear_onnx(file, inputs, outputs)


@pytest.fixture
def asset_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's asset folder, as INTERNUTOPIA_ASSETS_PATH names one before configs are imported."""
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    return tmp_path


def controller_cfg(robot: str, folder: Path) -> Any:
    cfg = ROBOTS[robot][1]
    assert cfg.policy_weights_path == f'{gm.ASSET_PATH}/{FILES[robot]}'
    return cfg.update(policy_weights_path=str(folder / FILES[robot]))


def make_env(robot: str, cfg: Any, env_num: int = 1, episodes: int = 0) -> Env:
    robot_cfg = ROBOTS[robot][0].update(name='robot', controllers=[cfg])
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.usd', robots=[robot_cfg])
    sim = SimConfig(physics_dt=1 / 200)
    env = Env(
        Config(simulator=sim, env_num=env_num, task_configs=[task] * max(episodes, env_num), metrics_save_path='none')
    )
    env.reset()
    return env


def turned_back(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A vector of the world in the frame of a body, by the matrix of its quaternion (w, x, y, z)."""
    w, x, y, z = q.astype(float)
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return matrix.T @ v


class By2x:
    """The arithmetic of a controller of 2.x, for one robot."""

    def __init__(self, name: str, robot: Any, network: Network):
        self.name, self.robot, self.network = name, robot, network
        self.order = {
            'h1': joint_names.H1_GYM_19,
            'aliengo': joint_names.ALIENGO_GYM_12,
            'g1': joint_names.G1_GYM,
            'gr1': joint_names.GR1_54,
        }[name]
        self.home = np.array([self.home_of(joint) for joint in self.order])
        self.last = np.zeros(len(self.order))
        self.old = np.zeros(SIZES[name][0])

    def home_of(self, joint: str) -> float:
        values = {
            'h1': {'hip_pitch': -0.4, 'knee': 0.8, 'ankle': -0.4},
            'aliengo': {'thigh': 0.8, 'calf': -1.5},
            'g1': {'hip_pitch': -0.1, 'knee': 0.3, 'ankle_pitch': -0.2},
            'gr1': {
                **{'hip_pitch': -0.2618, 'knee_pitch': 0.5236, 'ankle_pitch': -0.2618, 'elbow_pitch': -0.3},
                **{'left_shoulder_roll': 0.2, 'right_shoulder_roll': -0.2},
            },
        }[self.name]
        return next((value for part, value in values.items() if part in joint), 0.0)

    def targets(self, height: float | None, upper: np.ndarray | None) -> dict[str, float]:
        """Return the joint targets of an inference now, by name."""
        name, articulation = self.name, self.robot.articulation
        base = articulation.body('imu_link') if name in ('g1', 'gr1') else self.robot.get_robot_base()
        position, q = base.get_pose()
        indices = [articulation.get_dof_index(joint) for joint in self.order]
        joints = articulation.get_joint_positions(indices) - self.home
        velocities = articulation.get_joint_velocities(indices)
        seen = [i for i, joint in enumerate(self.order) if not joint.startswith(('L_', 'R_'))]
        command = [2.0 * SPEEDS[0], 2.0 * SPEEDS[1], 0.25 * SPEEDS[2]]
        command += {'h1': [0.0], 'aliengo': []}.get(name, [height])
        frame = [
            *command,
            *(turned_back(q, base.get_angular_velocity()) * 0.25),
            *turned_back(q, np.array([0, 0, -1])),
            *joints[seen],
            *(velocities[seen] * 0.05),
            *self.last[seen],
        ]
        if name == 'h1':
            frame += [*(turned_back(q, base.get_linear_velocity()) * 2.0)]
            ankle = min(articulation.body(f'{side}_ankle_link').get_pose()[0][2] for side in ('left', 'right'))
            self.old = np.array([*self.old[70:350], *frame, *[5.0 * np.clip(position[2] - ankle - 0.5, -1, 1)] * 121])
        elif name == 'aliengo':
            self.old = np.array([*frame, *self.old[:-45]])
        else:
            self.old = np.array([*self.old[len(frame) :], *frame])
        actions = self.network(self.old)
        if name in ('h1', 'aliengo'):
            self.last = actions
            applied = self.home + {'h1': 0.25, 'aliengo': 0.5}[name] * actions
        else:
            assert upper is not None
            self.last = np.array([*actions, *upper])
            applied = np.array([*(self.home[:12] + 0.25 * actions), *(upper * {'g1': 0.25, 'gr1': 1.0}[name])])
        return dict(zip(self.order, applied.tolist(), strict=True))


@pytest.mark.parametrize('robot', slow_but('h1', 'gr1', of=list(FILES)))
def test_a_policy_of_2x_sees_and_moves_what_it_did_there(robot: str, asset_folder: Path):
    pytest.importorskip('torch')
    network = write_policy(robot, asset_folder)
    env = make_env(robot, controller_cfg(robot, asset_folder), env_num=2)
    upper_size = len(joint_names.GR1_54) - 12 if robot == 'gr1' else 15
    upper = np.linspace(-0.2, 0.3, upper_size)
    default = np.array([-1.25 if 'elbow' in joint else 0.0 for joint in joint_names.GR1_54[12:]])
    own = next(task.robots['robot'] for task in env.runner.current_tasks.values() if task.env_id == 1)
    by_2x, expected, errors = By2x(robot, own, network), {}, []
    height = {'g1': 0.74, 'gr1': 0.9}.get(robot)
    for i in range(10):
        given: list[Any] = list(SPEEDS)
        if robot in ('g1', 'gr1'):
            given += [None, None] if i < 4 else [0.7, upper]
        if i % 4 == 0:
            commanded = upper if i >= 4 else default if robot == 'gr1' else np.zeros(15)
            expected = by_2x.targets(height if i < 4 else 0.7, commanded)
        controller: Any = own.get_controllers()['move_by_speed']
        env.step([{'robot': {'move_by_speed': given}}] * 2)
        names = controller.joint_subset.joint_names
        applied = dict(zip(names, controller.applied_joint_positions[1].tolist(), strict=True))
        assert applied.keys() == expected.keys()
        errors.append(max(abs(applied[name] - expected[name]) for name in names))
    assert max(errors) < CLOSE
    env.close()


def test_each_env_has_frames_of_its_own_that_are_saved_and_forgotten_with_its_episode(asset_folder: Path):
    pytest.importorskip('torch')
    write_policy('h1', asset_folder)
    env = make_env('h1', controller_cfg('h1', asset_folder), env_num=2, episodes=3)
    walk: Any = {'robot': {'move_by_speed': list(SPEEDS)}}

    def joints(env_id: int) -> list[Any]:
        return [env.step([walk] * env.env_num)[0][env_id]['robot']['joint_positions'] for _ in range(7)]

    first = joints(0)
    state = env.get_state([1])
    env.reset([0])
    on = joints(1)
    env.set_state(state)
    assert np.array_equal(on, joints(1))
    env.close()
    env = make_env('h1', controller_cfg('h1', asset_folder), episodes=2)
    assert np.array_equal(first, joints(0))
    env.reset([0])
    assert np.array_equal(first, joints(0))
    env.close()


def test_it_is_said_once_that_a_policy_was_trained_for_another_model(
    asset_folder: Path, caplog: pytest.LogCaptureFixture
):
    write_policy('g1', asset_folder)
    env = make_env('g1', controller_cfg('g1', asset_folder), env_num=2)
    env.close()
    said = [record.message for record in caplog.records if 'trained for another model' in record.message]
    assert len(said) == 1 and str(asset_folder / FILES['g1']) in said[0] and 'g1/move_by_speed.onnx' in said[0]


@pytest.mark.parametrize('robot', ['h1', 'gr1'])
def test_the_packaged_policy_takes_the_place_of_a_file_that_cannot_be_run(
    robot: str, asset_folder: Path, caplog: pytest.LogCaptureFixture
):
    file = asset_folder / FILES[robot]
    file.parent.mkdir(parents=True)
    if robot == 'h1':
        file.write_bytes(b'no checkpoint at all')
    else:
        write_linear_onnx(file, 99, 12)
    env = make_env(robot, controller_cfg(robot, asset_folder))
    obs = env.get_observations()
    for _ in range(200):
        obs, *_ = env.step([{'robot': {'move_by_speed': [0.5, 0.0, 0.0]}}])
    assert obs[0]['robot']['position'][0] > 0.2 and obs[0]['robot']['position'][2] > 0.7
    env.close()
    said = [record.message for record in caplog.records if 'is used instead' in record.message]
    assert len(said) == 1 and str(file) in said[0]


def test_without_the_switch_such_a_file_is_an_error(tmp_path: Path):
    write_policy('g1', tmp_path)
    with pytest.raises(ValueError, match='it has no metadata'):
        make_env('g1', controller_cfg('g1', tmp_path))


def test_a_broken_file_of_ones_own_is_an_error(asset_folder: Path):
    file = asset_folder / 'mine.pt'
    file.write_bytes(b'nothing')
    with pytest.raises(ValueError, match='mine.pt'):
        make_env('h1', h1.move_by_speed_cfg.update(policy_weights_path=str(file)))
