"""Training runs: what they leave in their folder, going on after a kill, policy files, and evaluation."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from toy_runs import train_toy
from toy_walker import ACTION_SCALE, ID, STEP
from warp_device import DEVICE

from internutopia.rl.policy import load_policy
from internutopia.rl.terms import term
from internutopia.rl.training.checkpoints import newest_checkpoint, read_checkpoint
from internutopia.rl.training.engine import Engine
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.run_folder import RunRecord, read_progress, read_run, write_run
from internutopia.rl.training.tasks import find_task
from internutopia.rl.training.train import train

CART_POLE = 'InternUtopia/CartPole-v0'
EXPORT_ERROR = 1e-5  # of actions around 1: other kernels round differently


@pytest.mark.slow
def test_a_run_leaves_record_log_checkpoints_curve_and_policy(finished):
    assert {path.name for path in finished.iterdir() if path.is_file() and 'tfevents' not in path.name} == {
        'run.json', 'progress.csv', 'model_0.pt', 'model_1.pt', 'curve.png', 'policy.onnx',
    }  # fmt: skip
    assert any('tfevents' in path.name for path in finished.iterdir())
    record = read_run(finished)
    assert (record.id, record.options, record.seed, record.commands) == (ID, {}, 3, ['what was typed'])
    assert record.training.hidden_dims == (8,) and record.versions['torch'] == torch.__version__
    progress = read_progress(finished)
    assert [(line.iteration, line.steps) for line in progress] == [(1, 32), (2, 64)]
    assert 0.0 < progress[0].seconds <= progress[1].seconds
    assert (finished / 'curve.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.nightly
def test_entropy_is_rewarded_in_the_first_share_of_the_updates(tmp_path):
    def final_std(share: float) -> float:
        settings = {'iterations': 8, 'entropy': 10.0, 'explore': share}
        return train_toy(tmp_path / str(share), settings=settings).progress[-1].action_std

    never, half, always = map(final_std, (0.0, 0.5, 1.0))
    assert never < half < always  # the momentum of the optimizer lasts for some updates


@pytest.mark.slow
def test_updates_get_smaller_after_the_share_that_explores(tmp_path):
    def moves(share: float) -> list[float]:
        settings = {'iterations': 20, 'entropy': 0.0, 'explore': share, 'desired_kl': 0.02, 'save_every': 1}
        run = train_toy(tmp_path / str(share), settings=settings).folder
        weights = [read_checkpoint(run / f'model_{k}.pt', 'cpu')['actor_state_dict']['mlp.0.weight'] for k in range(20)]
        return [float((after - before).norm()) for before, after in itertools.pairwise(weights)]

    half, always = moves(0.5), moves(1.0)
    assert half[:10] == always[:10]
    assert sum(half[-3:]) < 0.4 * sum(always[-3:])


@pytest.mark.slow
def test_updates_in_bfloat16_come_to_nearly_the_same_policy(finished, tmp_path):
    result = train_toy(tmp_path / 'run', seed=3, settings={'mixed_precision': True})
    observations = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    exact, rounded = (load_policy(folder / 'policy.onnx')(observations) for folder in (finished, result.folder))
    assert rounded.dtype == np.float32
    assert 1e-5 < np.abs(rounded - exact).max() < 1e-3 * np.abs(exact).max()


def test_the_policy_file_is_the_network_and_says_how_to_run_it(finished):
    policy = load_policy(finished / 'policy.onnx')
    network = load_trained(finished).act
    observations = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    actions = policy(observations)
    assert np.abs(actions).max() > 0.01
    np.testing.assert_allclose(actions, network(observations), rtol=0.0, atol=EXPORT_ERROR)
    metadata = policy.metadata
    assert (metadata.robot, metadata.joint_names, metadata.scale) == ('GenericRobot', ['shoulder'], [ACTION_SCALE])
    assert metadata.offset == pytest.approx([0.1]) and metadata.step_dt == pytest.approx(STEP)
    assert (metadata.command_low, metadata.command_high) == ([-0.5, 0.0, -1.0], [1.0, 0.0, 1.0])
    assert [(term.term, term.noise, term.delay) for term in metadata.observations] == [
        ('base_angular_velocity', 0.0, 0), ('command', 0.0, 0), ('phase', 0.0, 0),
    ]  # fmt: skip
    made = metadata.training
    assert (made['id'], made['seed'], made['env_steps'], made['commands']) == (ID, 3, 64, ['what was typed'])
    assert made['wall_seconds'] == read_progress(finished)[-1].seconds and 'mujoco' in made['versions']


@pytest.mark.slow
def test_a_run_starts_as_another_policy_and_lets_the_critic_learn_first(finished, tmp_path):
    policy = finished / 'policy.onnx'
    settings = {'start_from': str(policy), 'critic_first': 2, 'iterations': 2}
    run = train_toy(tmp_path / 'run', settings=settings)
    first, second = (read_checkpoint(tmp_path / 'run' / f'model_{i}.pt') for i in range(2))
    critics = [content['critic_state_dict']['mlp.0.weight'] for content in (first, second)]
    assert not torch.equal(*critics)
    assert run.policy is not None
    observations = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    # what has changed is the normalization, by 64 more observations
    np.testing.assert_allclose(load_policy(run.policy)(observations), load_policy(policy)(observations), atol=0.2)
    weights = first['actor_state_dict']
    before = read_checkpoint(finished / 'model_1.pt')['actor_state_dict']
    for name in (name for name in weights if name.startswith('mlp.')):
        assert torch.equal(weights[name], before[name]), name
    learned = train_toy(tmp_path / 'learned', settings=settings | {'critic_first': 1, 'iterations': 3})
    assert learned.policy is not None
    after = read_checkpoint(tmp_path / 'learned' / 'model_2.pt')['actor_state_dict']
    assert not torch.equal(after['mlp.0.weight'], before['mlp.0.weight'])


@pytest.mark.slow
def test_a_policy_that_sees_more_begins_as_if_it_did_not(finished, tmp_path):
    settings = {'start_from': str(finished / 'policy.onnx'), 'critic_first': 1, 'iterations': 1}
    run = train_toy(tmp_path / 'run', {'sees_height': True}, settings=settings)
    before = read_checkpoint(finished / 'model_1.pt')['actor_state_dict']['mlp.0.weight']
    weights = read_checkpoint(tmp_path / 'run' / 'model_0.pt')['actor_state_dict']['mlp.0.weight']
    assert torch.equal(weights[:, :8], before) and (weights[:, 8:] == 0.0).all() and weights.shape == (8, 9)
    less = {'start_from': str(run.policy), 'iterations': 1}
    with pytest.raises(ValueError, match=r'is another network: mlp\.0\.weight is \(8, 9\) there, \(8, 8\) here'):
        train_toy(tmp_path / 'less', settings=less)


def test_a_policy_that_is_another_network_cannot_be_started_from(finished, tmp_path):
    settings = {'start_from': str(finished / 'policy.onnx'), 'iterations': 1}
    with pytest.raises(ValueError, match=r'is another network: mlp\.0\.bias is \(8,\) there, \(16,\) here'):
        train_toy(tmp_path / 'wide', settings=settings | {'hidden_dims': (16,)})
    with pytest.raises(FileNotFoundError, match=r'gone\.onnx'):
        train_toy(tmp_path / 'gone', settings=settings | {'start_from': 'gone.onnx'})


def test_a_policy_without_a_layer_cannot_be_started_from(finished, tmp_path):
    import onnx

    model = onnx.load(finished / 'policy.onnx')
    (first,) = (tensor for tensor in model.graph.initializer if tensor.name == 'mlp.0.weight')
    first.name = 'other'
    onnx.save(model, tmp_path / 'other.onnx')
    settings = {'start_from': str(tmp_path / 'other.onnx'), 'iterations': 1}
    for options in ({}, {'sees_height': True}):
        with pytest.raises(ValueError, match=r'is another network: mlp\.0\.weight is nothing there'):
            train_toy(tmp_path / f'run_{len(options)}', options, settings=settings)


@pytest.mark.slow
def test_a_task_without_a_velocity_command_leaves_a_policy_for_a_learned_controller(tmp_path):
    small = {'num_envs': 4, 'iterations': 1, 'num_steps': 4}
    result = train(find_task(CART_POLE), tmp_path / 'run', settings=small, threads=1)
    assert result.finished and result.policy is not None
    trained = load_trained(result.policy)
    result = evaluate(trained.act, trained.task.config(5, threads=1), seconds=10.0)
    assert result.episodes == 5 and result.tracking is None
    assert 0.0 < result.mean_return < 4.0  # a second upright is worth 1: it falls before long
    assert result.terminated == 1.0 and result.mean_return == pytest.approx(result.mean_length * 0.02, abs=0.021)


@pytest.mark.nightly
def test_the_cart_pole_task_brings_settings_that_learn(tmp_path):
    result = train(find_task(CART_POLE), tmp_path / 'run', settings={'iterations': 12}, threads=1)
    assert result.progress[-1].mean_length > 2 * result.progress[0].mean_length
    assert result.progress[-1].learning_rate == result.settings.learning_rate == 2e-3


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint(run):
    before = read_checkpoint(run / 'model_1.pt')
    first = read_progress(run)
    with (run / 'progress.csv').open('a') as file:
        file.write('3,96,99.9,0,0,0,0,0\n4,12')  # an update after the checkpoint, and one half written
    result = train_toy(run, resume=True, settings={'iterations': 3}, command='typed later')
    progress = result.progress
    assert result.finished and progress[:2] == first
    assert [(line.iteration, line.steps) for line in progress] == [(1, 32), (2, 64), (3, 96)]
    assert first[1].seconds <= progress[2].seconds < 90.0
    after = read_checkpoint(run / 'model_2.pt')
    adam = [content['optimizer_state_dict']['state'][0]['step'].item() for content in (before, after)]
    assert adam[0] > 0 and adam[1] == 1.5 * adam[0]  # a third update on top of two
    assert read_run(run).commands == ['what was typed', 'typed later'] and read_run(run).training.iterations == 3
    assert load_policy(run / 'policy.onnx').metadata.training['env_steps'] == 96


@pytest.mark.slow
def test_a_run_that_is_done_stays_as_it_is(run):
    result = train_toy(run, resume=True)
    assert result.finished and len(result.progress) == 2 and not (run / 'model_2.pt').exists()


@pytest.mark.slow
def test_broken_checkpoints_are_passed_over_with_a_warning(run, caplog):
    whole = (run / 'model_1.pt').read_bytes()
    (run / 'model_2.pt').write_bytes(whole[: len(whole) // 2])
    (run / 'model_10.pt').write_bytes(b'nonsense')
    torch.save({'iter': 5}, run / 'model_5.pt')
    (run / 'model_11.pt.part').write_bytes(whole)
    assert newest_checkpoint(run) == run / 'model_1.pt'
    warnings = [record.getMessage() for record in caplog.records]
    for name, text in zip(('model_10.pt', 'model_5.pt', 'model_2.pt'), warnings, strict=True):
        assert str(run / name) in text
    assert 'actor_state_dict' in warnings[1]
    assert [line.iteration for line in train_toy(run, resume=True, settings={'iterations': 3}).progress] == [1, 2, 3]


@pytest.mark.slow
def test_a_run_that_was_killed_before_its_first_checkpoint_starts_anew(run):
    for path in run.glob('model_*.pt'):
        path.unlink()
    assert [line.steps for line in train_toy(run, resume=True).progress] == [32, 64]


@pytest.mark.nightly
def test_kill_and_go_on(tmp_path):
    folder = tmp_path / 'run'
    command = 'from internutopia.cli import main; main()'
    quick = ['--envs', '4', '--iterations', '100000', '--setting', 'num_steps=4', '--setting', 'save_every=5']
    arguments = ['train', CART_POLE, '--out', str(folder), '--threads', '1', *quick]
    process = subprocess.Popen([sys.executable, '-c', command, *arguments], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while not (folder / 'model_10.pt').exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    checkpoint = newest_checkpoint(folder)
    assert checkpoint is not None
    done = read_checkpoint(checkpoint)['iter'] + 1
    seconds = read_progress(folder)[done - 1].seconds
    result = train(find_task(CART_POLE), folder, resume=True, settings={'iterations': done + 2}, threads=1)
    assert [line.iteration for line in result.progress] == list(range(1, done + 3))
    assert [line.steps for line in result.progress] == [16 * i for i in range(1, done + 3)]
    assert seconds < result.progress[-1].seconds


@pytest.mark.slow
def test_stopping_leaves_a_checkpoint_of_the_last_update(tmp_path):
    seen = []
    result = train_toy(
        tmp_path / 'run',
        settings={'iterations': 50, 'save_every': 40},
        report=lambda progress, iterations: seen.append((progress.iteration, iterations)),
        stopped=lambda: len(seen) == 3,
    )
    assert not result.finished and result.policy is None
    assert seen == [(1, 50), (2, 50), (3, 50)]
    assert newest_checkpoint(tmp_path / 'run') == tmp_path / 'run' / 'model_2.pt'
    assert (tmp_path / 'run' / 'curve.png').exists()


@pytest.mark.slow
def test_options_are_remembered(tmp_path):
    result = train_toy(tmp_path / 'run', {'limit': 3, 'forward': [0.2, 0.4]})
    assert len(result.progress) == 3  # the settings of a task may depend on its options
    assert load_policy(tmp_path / 'run' / 'policy.onnx').metadata.command_low[0] == 0.2
    again = train_toy(tmp_path / 'run', resume=True, settings={'iterations': 4})
    assert again.finished and load_trained(tmp_path / 'run').task.options == {'limit': 3, 'forward': [0.2, 0.4]}
    with pytest.raises(ValueError, match=r"options = \{'limit': 3.*instead of \{'limit': 4"):
        train_toy(tmp_path / 'run', {'limit': 4}, resume=True)


@pytest.mark.parametrize(
    ('env_id', 'options', 'message'),
    [
        ('InternUtopia/H1-Velocty-v0', {}, "no task .*did you mean 'InternUtopia/H1-Velocity-v0'"),
        ('CartPole-v1', {}, "no task 'CartPole-v1'; known: .*'InternUtopia/CartPole-v0'"),
        ('no_such_module:Toys/Floater-v0', {}, "no module 'no_such_module'"),
        (CART_POLE, {'gravty': 1.0}, "no option 'gravty'; did you mean 'gravity'"),
        (CART_POLE, {'num_envs': 3}, "no option 'num_envs'"),
        (CART_POLE, {'gravity': 'high'}, "option 'gravity' .* cannot be 'high': .*valid number"),
    ],
)
def test_unknown_tasks_and_options(env_id, options, message):
    with pytest.raises(ValueError, match=message):
        find_task(env_id, options)


@pytest.mark.slow
def test_wrong_settings_write_nothing(tmp_path):
    for settings, message in (({'env_nums': 3}, "'env_num'"), ({'gamma': -1.0}, 'gamma')):
        with pytest.raises(ValueError, match=message):
            train_toy(tmp_path / 'run', settings=settings)
    with pytest.raises(ValueError, match='pole_length must be'):
        train(find_task(CART_POLE, {'pole_length': -1.0}), tmp_path / 'run', settings={'num_envs': 2})
    # what only the networks or the robot tell
    small = {'num_envs': 2, 'iterations': 1}
    for settings, message in (
        ({'start_from': 'gone.onnx'}, 'gone'),
        ({'mirror_samples': True}, 'only actions that move'),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            train(find_task(CART_POLE), tmp_path / 'run', settings=small | settings, threads=1)
    assert not (tmp_path / 'run').exists()


def test_folders_that_are_taken(run, tmp_path):
    with pytest.raises(ValueError, match='already has a training run: .*--resume'):
        train_toy(run)
    with pytest.raises(ValueError, match='seed = 3 instead of 4'):
        train_toy(run, resume=True, seed=4)
    with pytest.raises(ValueError, match='num_envs = 8 instead of 16'):
        train_toy(run, resume=True, settings={'num_envs': 16})
    with pytest.raises(ValueError, match='id = .*Floater.* instead of .*CartPole'):
        train(find_task(CART_POLE), run, resume=True)
    with pytest.raises(ValueError, match=r'is not a training run: there is no run\.json'):
        train_toy(tmp_path / 'elsewhere', resume=True)
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'diary.txt').write_text('dear diary')
    with pytest.raises(ValueError, match='not empty and is not a training run'):
        train_toy(tmp_path / 'mine')
    assert os.listdir(tmp_path / 'mine') == ['diary.txt']
    (run / 'run.json').write_text('{"id": ')
    with pytest.raises(ValueError, match=r'run\.json cannot be read'):
        train_toy(run, resume=True)


def test_policies_that_say_too_little(run):
    model = onnx.load(run / 'policy.onnx')
    (entry,) = model.metadata_props
    metadata = json.loads(entry.value)
    metadata['training'] = {}
    entry.value = json.dumps(metadata)
    onnx.save(model, run / 'policy.onnx')
    with pytest.raises(ValueError, match='does not name the task it was trained for: .*--id'):
        load_trained(run / 'policy.onnx')
    assert load_trained(run / 'policy.onnx', ID).task.id == ID
    del model.metadata_props[:]
    onnx.save(model, run / 'bare.onnx')
    with pytest.raises(ValueError, match='it has no metadata'):
        load_trained(run / 'bare.onnx', ID)
    with pytest.raises(ValueError, match='no checkpoint'):
        write_run(run / 'new', RunRecord(id=ID, training=find_task(ID).settings()))
        load_trained(run / 'new')


def still(observations: Any) -> Any:
    return 0.0 * observations[:, :1]


# where envs are stepped, and what policies get there
ENGINES = pytest.mark.parametrize(
    ('engine', 'arrays'),
    [(None, 'numpy'), (None, 'torch'), (Engine('mujoco_warp', DEVICE), 'torch')],
    ids=['host', 'host-tensors', 'device'],
)


@pytest.mark.nightly
@ENGINES
def test_errors_of_commanded_velocities_are_those_of_a_robot_that_does_not_move(engine, arrays):
    config = find_task(ID, {'forward': (0.6, 0.6), 'yaw_rate': (-0.3, -0.3)}).config(4, engine=engine)
    result = evaluate(still, config, seconds=1.0, push=0.0, arrays=arrays)
    assert result.seconds == pytest.approx(1.0) and result.mean_length == 50.0 and result.survived == 1.0
    assert result.mean_return == pytest.approx(1.0)  # of being alive for 1 s: nothing pushed it out of its area
    tracking = result.tracking
    assert tracking is not None and tracking.gait_period == pytest.approx(0.1)
    errors = (tracking.velocity_error, tracking.velocity_error_unaveraged)
    assert errors == pytest.approx((0.6, 0.6), abs=1e-5)
    assert tracking.yaw_rate_error == pytest.approx(0.3, abs=1e-5) == tracking.yaw_rate_error_unaveraged


@pytest.mark.slow
@ENGINES
def test_pushes_have_their_speed_and_their_time(engine, arrays):
    config = find_task(ID, {'forward': (0.0, 0.0), 'yaw_rate': (0.0, 0.0)}).config(4, engine=engine)
    result = evaluate(still, config, seconds=20 * STEP, push=0.5, push_every=10 * STEP, arrays=arrays)
    assert result.tracking is not None
    # at rest for 10 steps, 0.5 m/s for 10 more; the mean of 5 steps gets there in fifths
    assert result.tracking.velocity_error_unaveraged == pytest.approx(0.5 * 10 / 20, abs=1e-4)
    averaged = 0.5 * (0.2 + 0.4 + 0.6 + 0.8 + 6 * 1.0) / 20
    assert result.tracking.velocity_error == pytest.approx(averaged, abs=1e-4)


@pytest.mark.slow
@ENGINES
def test_who_ends_early_is_counted_once_and_no_longer(engine, arrays):
    config = find_task(ID, {'limit': 0.055, 'forward': (0.0, 0.0), 'yaw_rate': (0.0, 0.0)}).config(4, engine=engine)
    result = evaluate(still, config, seconds=25 * STEP, push=1.0, push_every=10 * STEP, arrays=arrays)
    # pushed after 10 steps, 2 cm per step: 5.5 cm are passed in the third step
    assert result.terminated == 1.0 and result.survived == 0.0 and result.mean_length == 13.0
    assert result.mean_return == pytest.approx(13 * STEP)
    assert result.tracking is not None
    assert result.tracking.velocity_error_unaveraged == pytest.approx(3 / 13, abs=1e-3)


@pytest.mark.slow
def test_commands_are_uniform_and_the_config_stays_as_it_is():
    seen = []

    def watching(observations: np.ndarray) -> np.ndarray:
        seen.append(observations[:, 3].copy())
        return still(observations)

    config = find_task(ID).config(64)
    before = config.model_copy(deep=True)
    evaluate(watching, config, seconds=5.2, push=0.0)
    assert config == before
    first, last = seen[0], seen[-1]
    assert (np.abs(first) > 1e-3).all()  # nobody is told to stand
    assert first.min() < -0.3 and first.max() > 0.8
    same = [np.array_equal(now, first) for now in seen]
    assert not same[-1] and sum(same) * STEP == pytest.approx(5.0, abs=2 * STEP) and last.max() > 0.8


def test_a_policy_that_does_not_fit(run):
    trained = load_trained(run / 'policy.onnx')
    with pytest.raises(ValueError, match='does not take the 4 observations of this task'):
        evaluate(trained.act, find_task(CART_POLE).config(2, threads=1))
    with pytest.raises(ValueError, match=r'actions of shape \(2, 3\), the task takes \(2, 1\)'):
        evaluate(lambda obs: np.zeros((len(obs), 3), np.float32), find_task(ID).config(2))


@term('metric')
def steps_lived(state):
    """Steps of the episode."""
    return state.steps.astype(np.float32)


def test_evaluation_gives_the_means_of_the_metrics_of_the_task():
    config = find_task(CART_POLE).config(4, 0, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    learning = task.learning.update(metrics={'lived': {'term': 'steps_lived'}})
    config = config.update(task_configs=[task.update(learning=learning)])
    result = evaluate(lambda obs: np.ones((4, 1), np.float32), config)
    assert result.terminated == 1.0 and result.metrics == {'lived': pytest.approx(result.mean_length)}
