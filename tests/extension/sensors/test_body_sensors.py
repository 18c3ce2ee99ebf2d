"""IMU, contact sensor and joint force sensor against analytic values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import Config, SensorCfg, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import ContactSensorCfg, IMUCfg, JointForceSensorCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

G = 9.81
SETTLED = 0.01  # relative: soft contacts and drives still swing a little
MASS = 2.0  # of the crate and of the pendulum's weight [kg]
LENGTH = 0.5  # of the pendulum [m]
CRATE = f"""
<worldbody><body name="crate"><freejoint/><geom type="box" size=".1 .1 .1" mass="{MASS}"/></body></worldbody>
"""
# a weight on a massless arm that turns about y (or about z, lying on its side)
PENDULUM = f"""
<worldbody>
  <body name="base"><geom size=".02" mass="1" contype="0" conaffinity="0"/>
    <body name="arm"><joint name="hinge" axis="0 1 0"/>
      <geom size=".001" pos="{LENGTH} 0 0" mass="{MASS}" contype="0" conaffinity="0"/>
    </body>
  </body>
</worldbody>
"""


@pytest.fixture
def start(make_env: Callable[..., Env], models: dict[str, str]) -> Callable[..., Env]:
    """Starts an Env with one task config per env, 500 substeps a second."""

    def start(*tasks: TaskCfg, substeps: int = 1, **fields: Any) -> Env:
        env = make_env(
            Config(
                simulator=SimConfig(physics_dt=1 / 500, substeps=substeps, threads=1),
                task_configs=list(tasks),
                env_num=len(tasks),
                metrics_save_path='none',
                **fields,
            )
        )
        env.reset()
        return env

    return start


@pytest.fixture
def crate(write_model: Callable[[str, str], str]) -> Callable[..., GenericRobotCfg]:
    """Makes a crate of 2 kg with sensors."""
    path = write_model('crate', CRATE)
    return lambda *sensors, z=0.1, **fields: GenericRobotCfg(
        usd_path=path, position=(0.0, 0.0, z), sensors=list(sensors), **fields
    )


@pytest.fixture
def pendulum(write_model: Callable[[str, str], str]) -> Callable[..., GenericRobotCfg]:
    """Makes a pendulum on a fixed base with sensors."""
    path = write_model('pendulum', PENDULUM)
    return lambda *sensors, **fields: GenericRobotCfg(
        usd_path=path, position=(0.0, 0.0, 2.0), sensors=list(sensors), **fields
    )


def task(robot: GenericRobotCfg, scene: str | None = None, **fields: Any) -> TaskCfg:
    return SingleInferenceTaskCfg(robots=[robot], scene_asset_path=scene, **fields)


def sensed(env: Env, name: str, env_id: int = 0) -> dict[str, Any]:
    return env.get_observations()[env_id]['robot']['sensors'][name]


def let_pass(env: Env, steps: int) -> None:
    for _ in range(steps):
        env.step([{}] * env.env_num)


def test_imu_at_rest_and_in_free_fall(start: Any, crate: Any, models: dict[str, str]) -> None:
    turn = (np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0)  # the sensor's x axis points up
    resting = task(crate(IMUCfg(prim_path='crate', orientation=turn)), models['floor'])
    falling = task(crate(IMUCfg(prim_path='crate', orientation=turn), z=5.0), models['floor'])
    env = start(resting, falling)
    np.testing.assert_allclose(sensed(env, 'imu', 1)['linear_acceleration'], 0.0, atol=1e-5)
    let_pass(env, 150)
    data = sensed(env, 'imu')
    assert {key: (value.shape, value.dtype) for key, value in data.items()} == {
        'linear_acceleration': ((3,), np.float32),
        'angular_velocity': ((3,), np.float32),
        'orientation': ((4,), np.float32),
    }
    np.testing.assert_allclose(data['linear_acceleration'], [G, 0, 0], rtol=SETTLED, atol=0.01)
    np.testing.assert_allclose(np.abs(data['orientation']), np.abs(turn), atol=1e-3)
    np.testing.assert_allclose(sensed(env, 'imu', 1)['linear_acceleration'], 0.0, atol=1e-5)


def test_imu_on_something_that_turns(start: Any, pendulum: Any) -> None:
    """Without gravity the weight is drawn inwards by w^2 r, and the sensor turns with the arm."""
    speed = 3.0
    imu = IMUCfg(prim_path='arm', translation=(LENGTH, 0.0, 0.0))
    side = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # the hinge is vertical: gravity is along it
    env = start(task(pendulum(imu, stiffness=0.0, damping=0.0, orientation=side)))
    arm = env.runner.current_tasks['0'].robots['robot'].articulation
    arm.set_joint_velocities([speed])
    let_pass(env, 20)
    data = sensed(env, 'imu')
    np.testing.assert_allclose(data['angular_velocity'], [0, speed, 0], atol=1e-3)
    np.testing.assert_allclose(data['linear_acceleration'], [-(speed**2) * LENGTH, G, 0], atol=1e-3)


def test_a_resting_weight_is_carried_by_the_ground(start: Any, crate: Any, models: dict[str, str]) -> None:
    strict = ContactSensorCfg(name='strict', threshold=2 * MASS * G)
    resting = task(crate(ContactSensorCfg(), strict), models['floor'])
    high = task(crate(ContactSensorCfg(), strict, z=5.0), models['floor'])
    env = start(resting, high)
    let_pass(env, 150)
    data = sensed(env, 'contact')
    np.testing.assert_allclose(data['force'], [0, 0, MASS * G], rtol=SETTLED, atol=0.01)
    assert data['in_contact'] is True
    assert sensed(env, 'strict')['in_contact'] is False, 'not that strong'
    in_the_air = sensed(env, 'contact', 1)
    assert in_the_air['force'].tolist() == [0, 0, 0] and in_the_air['in_contact'] is False


def test_contacts_of_objects_and_with_one_thing_alone(start: Any, crate: Any, models: dict[str, str]) -> None:
    """A cube of 1 kg on the crate; another one beside, of which the crate knows nothing."""
    cubes = [
        DynamicCubeCfg(name=name, prim_path=f'/{name}', position=position, scale=(0.1, 0.1, 0.1), mass=1.0)
        for name, position in {'rider': (0.0, 0.0, 0.251), 'other': (1.0, 0.0, 0.051)}.items()
    ]
    sensors = [
        ContactSensorCfg(name='all'),
        ContactSensorCfg(name='load', against='rider'),
        ContactSensorCfg(name='none', against='other'),
        ContactSensorCfg(name='rider', prim_path='/World/objects/rider'),
        ContactSensorCfg(name='drum', prim_path='drum'),
    ]
    env = start(task(crate(*sensors), models['crates'], objects=cubes))
    let_pass(env, 150)
    up = {name: sensed(env, name)['force'][2] for name in ('all', 'load', 'none', 'rider', 'drum')}
    weights = {'all': MASS * G, 'load': -1 * G, 'none': 0.0, 'rider': 1 * G, 'drum': 2 * G}
    assert up == pytest.approx(weights, rel=0.02, abs=0.05)


def test_a_held_pendulum(start: Any, pendulum: Any) -> None:
    """The drive holds m g l; the hinge carries m g, and so does what holds the base, with the base's own weight."""
    sensor = JointForceSensorCfg(joint_names=['hinge'], wrenches_at=['hinge', 'base'])
    env = start(task(pendulum(sensor, stiffness=1e5, damping=2e3)))
    let_pass(env, 200)
    data = sensed(env, 'joint_forces')
    torque = -MASS * G * LENGTH  # about y: gravity turns the arm the other way
    assert data['efforts'].tolist() == pytest.approx([torque], rel=1e-3)
    np.testing.assert_allclose(data['forces'], [[0, 0, MASS * G], [0, 0, (MASS + 1) * G]], rtol=1e-3, atol=0.05)
    np.testing.assert_allclose(data['torques'], [[0, torque, 0]] * 2, rtol=1e-3, atol=0.05)


def test_all_joints_in_joint_order_as_the_articulation_has_them(start: Any, make_robot: Any) -> None:
    arm = make_robot(controllers=None, sensors=[JointForceSensorCfg()])
    env = start(TaskCfg(type='SingleInferenceTask', robots=[arm]))
    let_pass(env, 3)
    efforts = env.get_observations()[0]['arm']['sensors']['joint_forces']['efforts']
    expected = env.runner.current_tasks['0'].robots['arm'].articulation.get_joint_efforts()
    assert efforts.tolist() == pytest.approx(expected.tolist()) and efforts.shape == (2,)


def test_a_reset_begins_anew_and_leaves_the_others_alone(start: Any, crate: Any, models: dict[str, str]) -> None:
    tasks = [task(crate(IMUCfg(), ContactSensorCfg()), models[scene]) for scene in ('floor', 'crates')]
    env = start(*tasks, episode_order='cycle')
    let_pass(env, 100)
    before = [sensed(env, 'imu', 0), sensed(env, 'contact', 0)]
    obs, _ = env.reset([1])
    fresh = obs[0]['robot']['sensors']
    # it touches the ground, which does not push yet: its first instant is one of free fall
    np.testing.assert_allclose(fresh['imu']['linear_acceleration'], 0.0, atol=0.05)
    after = [sensed(env, 'imu', 0), sensed(env, 'contact', 0)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_equal(one, other)


def test_sensors_of_a_robot_with_one_object_per_env(start: Any, crate: Any, models: dict[str, str]) -> None:
    """The same values, bit for bit, as on a batched robot."""
    sensors = (IMUCfg(acceleration_noise=0.1), ContactSensorCfg(), JointForceSensorCfg(wrenches_at=['crate']))
    batched = crate(*sensors, z=0.12)
    single = batched.update(type='PerEnvGenericRobot')
    seen = []
    for robot in (batched, single):
        env = start(task(robot, models['floor']), task(robot, models['floor']), seed=1)
        let_pass(env, 30)
        seen.append([env.get_observations()[i]['robot']['sensors'] for i in range(2)])
    np.testing.assert_equal(seen[0], seen[1])


def test_noise_depends_on_seed_and_episode_alone(start: Any, crate: Any, models: dict[str, str]) -> None:
    imu = IMUCfg(acceleration_noise=0.5, angular_velocity_noise=0.1)
    one, clean = task(crate(imu, z=9.0)), task(crate(IMUCfg(), z=9.0))

    def samples(env: Env, env_id: int, steps: int = 5) -> np.ndarray:
        values = []
        for _ in range(steps):
            let_pass(env, 1)
            values.append(sensed(env, 'imu', env_id)['linear_acceleration'])
        return np.array(values)

    pair, alone = start(one, one, seed=3), start(one, seed=3)
    first = samples(pair, 0)
    np.testing.assert_array_equal(samples(alone, 0), first)
    assert not np.array_equal(samples(start(one, seed=4), 0), first)
    np.testing.assert_array_equal(sensed(pair, 'imu', 1)['orientation'], sensed(pair, 'imu', 0)['orientation'])
    assert not np.array_equal(*(sensed(pair, 'imu', i)['linear_acceleration'] for i in range(2)))
    assert np.array_equal(*(sensed(pair, 'imu', 0)['linear_acceleration'] for _ in range(2))), 'one moment, one value'
    many = samples(start(one, seed=5), 0, 60)
    assert np.std(many) == pytest.approx(0.5, rel=0.2) and abs(np.mean(many)) < 0.15
    np.testing.assert_allclose(samples(start(clean), 0), 0.0, atol=1e-5)


@pytest.mark.parametrize(
    ('sensor', 'message'),
    [
        (IMUCfg(prim_path='crat'), "robot 'robot', sensor 'imu': there is no link 'crat'; did you mean 'crate'"),
        (ContactSensorCfg(prim_path='leg'), "sensor 'contact': there is no link or object 'leg'; known: 'crate'"),
        (ContactSensorCfg(against='leg'), "sensor 'contact': there is no link or object 'leg'"),
        (JointForceSensorCfg(joint_names=['hinge']), "sensor 'joint_forces': there is no joint 'hinge'; known: none"),
        (JointForceSensorCfg(wrenches_at=['hinge']), "there is no link or joint 'hinge'; known: 'crate'"),
    ],
)
def test_a_name_that_is_not_there(make_env: Any, crate: Any, models: dict[str, str], sensor: Any, message: str) -> None:
    tasks = [task(crate(), models['floor']), task(crate(sensor), models['floor'])]
    env = make_env(Config(task_configs=tasks, env_num=2, metrics_save_path='none'))
    with pytest.raises(ValueError, match=message):
        env.reset()
    assert env.reset([0])[0][0] is not None, 'nothing was started'


@pytest.mark.parametrize(
    'fields',
    [
        {'translation': (np.nan, 0.0, 0.0)},
        {'orientation': (0.0, 0.0, 0.0, 0.0)},
        {'acceleration_noise': -1.0},
        {'acceleration_noise': np.nan},
        {'acceleration_nois': 1.0},
    ],
)
def test_a_bad_config(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        IMUCfg(**fields)
    with pytest.raises(ValidationError, match='nothing to measure'):
        JointForceSensorCfg(joint_names=[])


def test_a_plain_config_is_as_good_as_its_own(start: Any, crate: Any) -> None:
    env = start(task(crate(SensorCfg(name='imu', type='IMU', prim_path='crate'), z=3.0)))
    assert sensed(env, 'imu')['orientation'].tolist() == [1, 0, 0, 0]


def test_nothing_is_computed_without_such_sensors(start: Any, crate: Any) -> None:
    env = start(task(crate()))
    assert env.runner.world.model(0).nsensor == 0
