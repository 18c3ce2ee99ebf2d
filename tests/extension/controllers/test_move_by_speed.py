"""Controllers that walk with a policy, on small policies with known weights: when they act, on what, to what effect."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from walking_hopper import COMMAND, HOME, METADATA, SENSES, WEIGHTS, expected, send, walk_of

from internutopia.config.learning import LearningCfg
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import JointControllerCfg, MoveBySpeedControllerCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

WritePolicy = Callable[..., str]
Start = Callable[..., Env]


class TestWhenItActs:
    @pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
    def test_every_fifth_step_at_240_hz_with_the_targets_of_the_policy(
        self, start: Start, hopper: Any, write_policy: WritePolicy, suffix: str
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], suffix, **METADATA)))
        commands = [[0.05 * i, 0.0, 0.5 - 0.05 * i] for i in range(16)]  # between its actions nobody listens
        for command in commands:
            send(env, command)
        acted = expected(commands[::5])
        np.testing.assert_allclose(walk_of(env).given[0], np.repeat(acted, 5, axis=0)[:16], atol=1e-6)

    @pytest.mark.parametrize(
        ('rate', 'substeps', 'gaps'), [(240, 1, {5}), (200, 1, {4, 5}), (60, 4, {1, 2}), (48, 5, {1}), (46, 5, {1})]
    )
    def test_at_its_own_rate_on_average(
        self, start: Start, hopper: Any, write_policy: WritePolicy, rate: int, substeps: int, gaps: set[int]
    ) -> None:
        env = start(hopper(write_policy([(np.zeros((3, 2)), [0, 0])])), rate=rate, substeps=substeps)
        calls = []
        for _ in range(3 * rate):
            send(env, [0, 0, 0])
            calls.append(len(walk_of(env).policy.batches))
        acted = np.flatnonzero(np.diff([0, *calls]))
        assert acted[0] == 0 and len(acted) == 3 * min(rate, 48)
        assert set(np.diff(acted).tolist()) == gaps

    def test_with_the_policy_of_the_name(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        still = write_policy([(np.zeros((7, 2)), [0, 0])], **METADATA)
        names = {'policies': {'brave': write_policy([(WEIGHTS, [0, 0])], **METADATA)}, 'policy': 'brave'}
        env = start(hopper(still, **names))
        send(env, [0.1, 0.0, 0.2])
        np.testing.assert_allclose(walk_of(env).given[0], expected([[0.1, 0.0, 0.2]]), atol=1e-6)

    def test_no_policy_of_the_name(self) -> None:
        with pytest.raises(ValidationError, match="no policy 'rouhg' in policies; did you mean 'rough'"):
            MoveBySpeedControllerCfg(
                name='walk', policy_weights_path='flat.onnx', policies={'rough': 'rough.onnx'}, policy='rouhg'
            )

    def test_once_for_all_envs_of_a_robot(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=4)
        for _ in range(11):
            send(env, *([0.1 * i, 0, 0] for i in range(4)))
        assert [batch[:, 0].tolist() for batch in walk_of(env).policy.batches] == [
            pytest.approx([0, 0.1, 0.2, 0.3])
        ] * 3

    def test_envs_keep_their_own_clocks_and_memories(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=3)
        commands = [[0.3, 0.0, 0.2], [-0.2, 0.0, 0.4], [0.1, 0.0, -0.4]]
        for step in range(13):
            if step == 3:
                env.reset([1])
            send(env, *commands)
        given = walk_of(env).given
        for env_id, begin in ((0, 0), (1, 3), (2, 0)):
            wanted = np.repeat(expected([commands[env_id]] * 3), 5, axis=0)[: 13 - begin]
            np.testing.assert_allclose(given[env_id][begin:], wanted, atol=1e-6)
        np.testing.assert_allclose(given[1][:3], expected([commands[1]]) * 3, atol=1e-6)

    def test_an_env_that_sends_nothing_keeps_its_targets_and_acts_at_once_when_it_does(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=2)
        for step in range(30):
            send(env, [0.3, 0, 0], [0.3, 0, 0] if step in (0, 17, 18, 22) else None)
        hips = [row[1] for row in walk_of(env).given[1]]
        np.testing.assert_allclose(hips[0], 0.2 + 0.15)
        assert hips[0] != hips[1] == hips[2] != hips[3], 'it acts in steps 0, 17 and 22'
        np.testing.assert_allclose([row[1] for row in walk_of(env).given[0]][:5], hips[0])

    def test_it_is_called_at_most_once_a_step_in_envs_slower_than_it(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        with pytest.raises(
            ValueError, match=r"'walk', policy .*: it acts every 0\.02083 s, but an env step lasts 0\.025"
        ):
            start(hopper(write_policy([(np.zeros((3, 2)), [0, 0])])), rate=40, substeps=5)


class TestWhatItSees:
    @pytest.mark.parametrize(('rate', 'substeps'), [(240, 1), (48, 5)])
    def test_the_same_as_in_training(
        self, start: Start, hopper: Any, write_policy: WritePolicy, make_config: Any, rate: int, substeps: int
    ) -> None:
        """Bit for bit the trajectory of the array API under the same policy, from its own observations."""
        rng = np.random.default_rng(0)
        network = [(rng.normal(size=(17, 32)) / 4, rng.normal(size=32)), (rng.normal(size=(32, 2)) / 6, [0.1, -0.1])]
        offset = np.array(HOME, np.float32).tolist()
        path = write_policy(network, observations=SENSES, offset=offset, scale=[0.3, 0.2])
        env = start(hopper(path), env_num=2, rate=rate, substeps=substeps)
        policy = walk_of(env).policy
        command = [0.4, -0.2, 0.6]
        learning = {
            'action': {'controller': 'joints', 'scale': {'hip': 0.3, 'tail': 0.2}, 'offset': 'home'},
            'observations': SENSES,
            'commands': {'speed': {'term': 'uniform', 'params': {'low': command, 'high': command}}},
        }
        joints = JointControllerCfg(name='joints', joint_names=['hip', 'tail'])
        task = env.runner.config.task_configs[0]
        task = task.update(robots=[task.robots[0].update(controllers=[joints])])
        config = make_config(
            tasks=[task], env_num=3, sim={'physics_dt': 1 / 240, 'substeps': 5}, episode_order='cycle', seed=0
        )
        envs = VectorEnv(config, LearningCfg.model_validate(learning))
        seen, _ = envs.reset()
        for step in range(30):
            seen = envs.step(policy(seen))[0]
            obs = [send(env, command, command) for _ in range(5 // substeps)][-1]
            state = envs.core.state
            for values, key in ((state.joint_positions, 'joint_positions'), (state.base_position, 'position')):
                np.testing.assert_array_equal(obs[1]['hopper'][key], values[2], err_msg=f'step {step}')
        assert abs(env.get_observations()[1]['hopper']['position'][2] - 0.3) > 0.05, 'it fell to the ground'
        envs.close()

    @pytest.mark.slow
    def test_results_do_not_depend_on_the_number_of_envs(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        """Bit for bit, with a network as large as those that walk; the last env is the same in all runs."""
        rng = np.random.default_rng(0)
        sizes = (17, 256, 128, 64, 2)
        network = [
            (rng.normal(size=(n, m)) / np.sqrt(n), np.zeros(m)) for n, m in zip(sizes[:-1], sizes[1:], strict=True)
        ]
        for suffix in ('.onnx', '.pt'):
            path = write_policy(network, suffix, observations=SENSES, offset=HOME, scale=0.3)
            runs = []
            for env_num in (1, 2, 7):
                env = start(hopper(path), env_num=env_num, rate=120, substeps=2)
                others = [[0.5, 0.1 * i, -0.3] for i in range(env_num - 1)]
                seen = [send(env, *others, [0.3, 0.0, 0.5])[-1]['hopper'] for _ in range(30)]
                runs.append(np.array([[*obs['position'], *obs['joint_positions']] for obs in seen]))
                assert np.ptp(runs[-1][:, 3:], axis=0).min() > 0.05
            np.testing.assert_array_equal(runs[0], runs[1])
            np.testing.assert_array_equal(runs[0], runs[2])

    @pytest.mark.parametrize(
        ('controller', 'robot'),
        [('Walk', 'PerEnvGenericRobot'), ('PerEnvWalk', 'GenericRobot'), ('PerEnvWalk', 'PerEnvGenericRobot')],
    )
    def test_one_object_per_env_does_the_same(
        self, start: Start, hopper: Any, write_policy: WritePolicy, controller: str, robot: str
    ) -> None:
        """As in packages written for InternUtopia 2: subclasses of built-in classes that are not batched."""
        path = write_policy([(np.eye(17, 2), [0.1, 0])], observations=SENSES, offset=HOME)
        batched, single = (start(hopper(path, *kinds), env_num=3) for kinds in ((), (controller, robot)))
        for step in range(24):
            if step == 7:
                for env in (batched, single):
                    env.reset([1])
            sent = [[0.3, 0, 0], [0, -0.2, 0.5], [0.1, 0, 0] if step % 7 else None]
            for a, b in zip(send(batched, *sent), send(single, *sent), strict=True):
                for key in ('position', 'orientation', 'joint_positions', 'joint_velocities'):
                    np.testing.assert_array_equal(a['hopper'][key], b['hopper'][key])

    def test_two_robots_in_one_env_do_not_mix(
        self, make_env: Any, models: dict[str, str], hopper: Any, write_policy: WritePolicy
    ) -> None:
        path = write_policy([(WEIGHTS, [0, 0])], **METADATA)
        first = hopper(path)
        second = first.update(name='second', prim_path='/second', position=(2.0, 0.0, 0.3))
        task = SingleInferenceTaskCfg(scene_asset_path=models['floor'], robots=[first, second])
        env = make_env(tasks=[task] * 2, env_num=2, sim={'physics_dt': 1 / 240})
        env.reset()
        robots = env.runner.current_tasks['0'].robots
        commands = {'hopper': [0.3, 0.0, 0.2], 'second': [-0.4, 0.0, 0.5]}
        for _ in range(12):
            env.step([{name: {'walk': command} for name, command in commands.items()}] * 2)
        for name, command in commands.items():
            given = robots[name].batch.robot.controllers['walk'].given
            wanted = np.repeat(expected([command] * 3), 5, axis=0)[:12]
            for env_id in range(2):
                np.testing.assert_allclose(given[env_id], wanted, atol=1e-6)


def test_a_policy_that_sees_the_ground_does_so_in_any_scene(
    hopper: Any, make_env: Callable[..., Env], write_policy: WritePolicy, tmp_path: Any
) -> None:
    """Through the robot, and not what hangs over it."""
    scene = tmp_path / 'steps.xml'
    scene.write_text(
        '<mujoco><worldbody><geom type="plane" size="9 9 0.1"/><geom type="box" size="1 1 0.05" pos="1.3 0 0.05"/>'
        '<geom type="box" size="9 9 0.1" pos="0 0 1.5"/>'
        '</worldbody></mujoco>'
    )
    scan = {'term': 'height_scan', 'params': {'forward': (0.0, 0.3), 'left': (0.0,), 'offset': 0.25}}
    policy = write_policy([(np.zeros((5, 2)), [0, 0])], **METADATA | {'observations': [COMMAND, scan]})
    robot = hopper(policy).update(position=(0.2, 0.0, 0.3), orientation=(1.0, 0.0, 0.0, 0.0))
    far = robot.update(position=(-3.0, 0.0, 0.3))
    env = make_env(
        tasks=[SingleInferenceTaskCfg(scene_asset_path=str(scene), robots=[each]) for each in (robot, far)],
        env_num=2,
        sim={'physics_dt': 1 / 240},
    )
    env.reset()
    send(env, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    seen = walk_of(env).policy.batches[0][:, 3:]
    np.testing.assert_allclose(seen, [[0.05, -0.05], [0.05, 0.05]], atol=1e-5)
