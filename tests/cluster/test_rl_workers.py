"""Array API over worker processes: the same numbers as in one, and what happens when a worker fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray_toys import alive, wait_until

from internutopia.config import Config
from internutopia.config.config import RayDistributionCfg
from internutopia.recording import Recorder
from internutopia.rl import VectorEnv, term
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.rl.state import RobotState
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

pytestmark = pytest.mark.xdist_group('ray')

MAIN = os.getpid()
WORKERS, EACH = 2, 3
ENVS = WORKERS * EACH


@term('termination')
def trouble(state: RobotState, folder: str) -> Any:
    """Ends nothing; but the first worker that finds a file of that name dies or fails."""
    for name in ('kill', 'raise'):
        file = Path(folder) / name
        if os.getpid() != MAIN and file.exists():
            with suppress(FileNotFoundError):  # the other worker was first
                file.unlink()
                if name == 'kill':
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError('broken')
    return np.zeros(state.env_num, bool)


@term('reward')
def trouble_paid(state: RobotState, folder: str) -> Any:
    """Nothing; but the first worker that finds a file spoils the reward of its second env."""
    paid, file = np.zeros(state.env_num), Path(folder) / 'spoil'
    if os.getpid() != MAIN and file.exists():
        with suppress(FileNotFoundError):
            file.unlink()
            paid[1] = np.nan
    return paid


@term('metric')
@term('observation')
def level(state: RobotState) -> Any:
    """Progress of the curriculum."""
    return state.levels


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files ask for trouble."""
    return tmp_path_factory.mktemp('trouble')


@pytest.fixture(scope='module')
def config(cluster: None, folder: Path) -> Config:
    """Cart-poles with all that is random or remembered: noise, delays, pushes, two tasks in random order, levels."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # pyright: ignore[reportPrivateImportUsage]
    import_extensions()
    config = cart_pole.config(ENVS, 0, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    observations = [
        *(each.update(noise=0.1, delay=1) for each in task.learning.terms(privileged=False)),
        {'term': 'level'},
    ]
    learning = task.learning.update(
        observations=observations,
        critic_observations=[{'term': 'joint_positions', 'noise': 0.1}],
        metrics={'level': {'term': 'level'}},
        rewards=[*task.learning.rewards, {'term': 'trouble_paid', 'params': {'folder': str(folder)}}],
        randomizations=[
            *task.learning.randomizations,
            {'term': 'joint_offset', 'params': {'velocity': (-0.1, 0.1)}, 'interval': (0.05, 0.2)},
        ],
        curricula=[{'term': 'survival', 'params': {'long': 0.4, 'short': 0.2, 'step': 0.25}}],
        terminations=[
            *task.learning.terminations,
            {'term': 'trouble', 'params': {'folder': str(folder)}},
        ],
    )
    tasks = [task.update(max_episode_steps=steps, learning=learning) for steps in (12, 25)]
    return config.update(task_configs=tasks, episode_order='shuffle', seed=3)


def over_workers(config: Config, workers: int = WORKERS) -> Config:
    """The same envs in so many workers."""
    return config.update(env_num=ENVS // workers).distribute(RayDistributionCfg(proc_num=workers, episode_retries=1))


@pytest.fixture(scope='module')
def shared(cluster: None) -> Iterator[list[VectorEnv]]:
    """The envs that tests share, once one of them has asked for them."""
    made: list[VectorEnv] = []
    yield made
    for envs in made:
        envs.close()
        envs.close()
        with pytest.raises(RuntimeError, match='^step: the envs are closed'):
            envs.step(np.zeros((ENVS, 1)))


@pytest.fixture
def envs(config: Config, shared: list[VectorEnv]) -> VectorEnv:
    """Envs in two workers; each test begins with a reset of all."""
    if not shared:
        shared.append(VectorEnv(over_workers(config), autoreset_mode='SameStep'))
    return shared[0]


def played(envs: VectorEnv, steps: int = 40) -> list[Any]:
    """All that comes out of a reset of some envs in the middle and many steps, in which poles fall."""
    rng = np.random.default_rng(0)
    seen: list[Any] = [envs.reset(seed=5), envs.critic_observations()]
    for step in range(steps):
        if step == steps // 2:
            mask = np.array([True, False] * (ENVS // 2))
            seen.append(envs.reset(options={'reset_mask': mask}))
        seen.append(envs.step(rng.uniform(-1.0, 1.0, (ENVS, 1)).astype(np.float32)))
        seen.append(envs.critic_observations() if step % 2 else None)
    return seen


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal to the bit, and of the same types."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, list | tuple):
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif ours is not None:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_workers_compute_what_one_process_does(config: Config, envs: VectorEnv) -> None:
    local = VectorEnv(config, autoreset_mode='SameStep')
    expected, again = played(local), played(local)
    local.close()
    ended = [info for _, _, _, _, info in (each for each in expected if isinstance(each, tuple) and len(each) == 5)]
    assert sum('final_info' in info for info in ended) >= 5, 'episodes end'
    assert_same(played(envs), expected)
    assert_same(played(envs), again)


def test_a_page_shows_envs_of_workers(config: Config, envs: VectorEnv) -> None:
    """Where those of one process are; and who looks changes nothing."""
    pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')
    from page_client import PageClient

    from internutopia.viewer import attach

    local, env_id = VectorEnv(config, autoreset_mode='SameStep'), ENVS - 1
    actions = np.linspace(-0.5, 0.5, ENVS, dtype=np.float32)[:, None]
    for each in (local, envs):
        each.reset(seed=5)
        for _ in range(5):
            each.step(actions)
    with attach(envs, paused=True) as viewer, PageClient(viewer.url) as page:
        seen: list[Any] = []
        running = threading.Thread(target=lambda: seen.append(envs.step(actions)))
        running.start()
        page.set('Follow', 'nobody')
        page.set('Env', env_id)
        title = f'episode {local.core.episode_ids[env_id]}**'
        page.wait_for(lambda: title in page.text() and '| step | 5 |' in page.text() and '| return |' in page.text())
        data = local.core.runner.world.data(env_id)  # pyright: ignore[reportAttributeAccessIssue]
        at = {name: data.xpos[int(name.rpartition('/')[2])] for name in page.nodes}
        assert len(at) >= 2 and np.abs(np.array(list(at.values()))).max() > 1e-3
        page.wait_for(lambda: all(np.allclose(page.position(name), at[name], atol=1e-4) for name in at))
        page.set('Run', True)
        running.join()
    assert_same(seen[0], local.step(actions))
    assert_same(envs.critic_observations(), local.critic_observations())
    local.close()


@pytest.mark.slow
@pytest.mark.parametrize(('workers', 'elsewhere'), [(1, True), (3, False)])
def test_any_number_of_workers_computes_the_same(
    config: Config, workers: int, elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With restarts in the next step, with the same results in the file, and on another machine."""
    if elsewhere:
        monkeypatch.setattr('internutopia.cluster.worker_pool.this_node', lambda: None)
    seen, lines = [], []
    for name, run in (('local', config), ('workers', over_workers(config, workers))):
        results = tmp_path / f'{name}.jsonl'
        envs = VectorEnv(run.update(metrics_save_path=results), autoreset_mode='NextStep')
        seen.append(played(envs))
        envs.close()
        lines.append(results.read_text().splitlines())
    assert_same(seen[1], seen[0])
    assert sorted(lines[1]) == sorted(lines[0])
    assert len(lines[0]) > 5


def test_a_dead_worker_costs_its_envs_their_steps(config: Config, envs: VectorEnv, folder: Path) -> None:
    local = VectorEnv(config, autoreset_mode='SameStep')
    actions = np.zeros((ENVS, 1), np.float32)
    for each in (local, envs):
        each.reset(seed=5)
        seen, *_ = each.step(actions)
    expected, *_ = local.step(actions)
    local.close()
    ids = envs.core.episode_ids.copy()
    (folder / 'kill').touch()
    obs, rewards, terminated, truncated, info = envs.step(actions)
    lost = np.flatnonzero(truncated)
    assert lost.tolist() in ([0, 1, 2], [3, 4, 5])
    others = np.setdiff1d(np.arange(ENVS), lost)
    np.testing.assert_array_equal(obs[others], expected[others])
    np.testing.assert_array_equal(info['final_obs'][lost], seen[lost], 'what was seen last')
    assert not terminated.any()
    assert not info['failed'].any(), 'nothing was wrong with these envs'
    assert not rewards[lost].any()
    worker = lost[0] // EACH
    for env_id in lost:
        text = info['final_info']['error'][env_id]
        assert re.fullmatch(rf'worker {worker} died \(.*\); the episode goes back to the queue', text)
    np.testing.assert_array_equal(info['episode_id'], ids, 'the same episodes start again')
    assert info['active'].all()
    _, _, _, truncated, _ = envs.step(actions)
    assert not truncated.any()


def spin(core: Any, first: int) -> None:
    """Have the second env of a worker diverge."""
    core.state.articulation.set_joint_velocities([[0.0, 1e12]], env_ids=np.array([1]))


def test_an_env_of_a_worker_that_diverges_is_terminated(envs: VectorEnv) -> None:
    envs.reset(seed=5)
    seen, *_ = envs.step(np.zeros((ENVS, 1)))
    core: Any = envs.core  # in processes
    core.ask({1: spin})
    _, rewards, terminated, truncated, info = envs.step(np.zeros((ENVS, 1)))
    assert terminated.tolist() == info['failed'].tolist() == [env_id == EACH + 1 for env_id in range(ENVS)]
    assert not truncated.any() and rewards[EACH + 1] == 0.0
    assert 'diverged' in info['final_info']['error'][EACH + 1]
    np.testing.assert_array_equal(info['final_obs'][EACH + 1], seen[EACH + 1])


def test_a_worker_names_what_is_not_finite(envs: VectorEnv, folder: Path) -> None:
    envs.reset(seed=5)
    (folder / 'spoil').touch()
    with pytest.raises(ValueError, match=r"^env [14], step 1 of episode \d+: reward term 'trouble_paid'"):
        envs.step(np.zeros((ENVS, 1)))
    envs.reset(seed=5)
    assert np.isfinite(envs.step(np.zeros((ENVS, 1)))[1]).all()


def test_an_error_in_a_worker_says_where(envs: VectorEnv, folder: Path) -> None:
    envs.reset(seed=5)
    (folder / 'raise').touch()
    with pytest.raises(RuntimeError, match='^broken\n') as caught:
        envs.step(np.zeros((ENVS, 1)))
    (note,) = caught.value.__notes__
    assert re.match(r'in worker (0 \(process \d+ on .*, envs 0 to 2\)|1 \(process \d+ on .*, envs 3 to 5\)):\n', note)
    assert 'in trouble' in note, 'the traceback there'
    envs.reset(seed=5)
    _, _, terminated, truncated, _ = envs.step(np.zeros((ENVS, 1)))
    assert not (terminated | truncated).any()


def test_learners_see_and_set_the_ages_of_episodes(envs: VectorEnv) -> None:
    import torch

    from internutopia.rl.rsl_rl import RslRlVecEnv

    learner = RslRlVecEnv(envs)
    assert learner.get_observations()['critic'].shape == (ENVS, envs.critic_size)
    learner.step(torch.zeros(ENVS, 1))
    assert (learner.episode_length_buf == 1).all()
    learner.episode_length_buf = torch.tensor([1, 24, 1, 24, 1, 1])
    _, _, dones, extras = learner.step(torch.zeros(ENVS, 1))
    assert dones.tolist() == extras['time_outs'].tolist() == [0, 1, 0, 1, 0, 0]


def test_stable_baselines3_takes_workers(config: Config, envs: VectorEnv) -> None:
    from internutopia.rl.sb3 import SB3VecEnv

    local = SB3VecEnv(config)
    seen: list[list[Any]] = [[], []]
    ends = 0
    for outcomes, learner in zip(seen, (SB3VecEnv(envs), local), strict=True):
        learner.seed(2)
        outcomes.append(learner.reset())
        for _ in range(30):
            obs, rewards, dones, infos = learner.step(np.full((ENVS, 1), 0.5, np.float32))
            outcomes += [obs, rewards, dones]
            ended = [infos[row] for row in np.flatnonzero(dones)]
            outcomes += [value for info in ended for value in (info['terminal_observation'], info['episode']['l'])]
            ends += len(ended)
    local.close()
    assert ends > ENVS
    for ours, theirs in zip(*seen, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_only_in_workers_is_refused(config: Config, envs: VectorEnv, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="^render_mode='rgb_array': a distributed VectorEnv does not support rendering"
    ):
        VectorEnv(over_workers(config), render_mode='rgb_array')
    with pytest.raises(RuntimeError, match='are in its workers, not in this process$'):
        _ = envs.core.runner
    with pytest.raises(NotImplementedError, match='these are in workers: omit distribute'):
        Recorder(tmp_path / 'data').attach(envs)
    envs.reset()
    with pytest.raises(ValueError, match='^action of env 4 is not finite'):
        envs.step(np.array([[0.0]] * 4 + [[np.nan]] + [[0.0]]))


SCRIPT = """
import os, signal, sys
import numpy as np
from internutopia.config.config import RayDistributionCfg
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored
import_extensions()
envs = VectorEnv(cart_pole.config(2, 0, threads=1).distribute(RayDistributionCfg(proc_num=2)))
envs.reset()
print(*(place.split()[1] for place in envs.core._pool._places), flush=True)
while True:
    envs.step(np.zeros((4, 1)))
"""


@pytest.mark.nightly
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_program(cluster: None, number: signal.Signals) -> None:
    import ray

    environment = {**os.environ, 'RAY_ADDRESS': ray.get_runtime_context().gcs_address}
    with subprocess.Popen(
        [sys.executable, '-c', SCRIPT], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        process.send_signal(number)
        assert process.wait() != 0
    wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.slow
def test_groups_of_envs_are_sent_to_and_received_from_by_worker(config: Config) -> None:
    seen: list[dict[int, list[Any]]] = []
    with pytest.raises(ValueError, match='^distribution_config: 3 groups need proc_num=3, got 2$'):
        AsyncEnvs(over_workers(config), num_envs=ENVS, batch_size=2)
    for run in (config, over_workers(config)):
        groups = AsyncEnvs(run, num_envs=ENVS, batch_size=EACH)
        groups.async_reset(seed=1)
        outcomes: dict[int, list[Any]] = {0: [], EACH: []}
        while min(map(len, outcomes.values())) < 15:  # which group is next is a matter of chance
            outcome = groups.recv()
            env_ids = outcome[-1]['env_id']
            outcomes[env_ids[0]].append(outcome)
            groups.send(0.1 * env_ids[:, None], env_ids)
        groups.close()
        seen.append(outcomes)
    for first, local in seen[0].items():
        assert_same(seen[1][first][:15], local[:15])


@pytest.mark.slow
def test_training_over_workers_learns_the_same(cluster: None, tmp_path: Path) -> None:
    from internutopia.rl.training.run_folder import read_progress
    from internutopia.rl.training.tasks import find_task
    from internutopia.rl.training.train import train

    task, settings = find_task('InternUtopia/CartPole-v0', {}), {'env_num': 4, 'iterations': 2}
    with pytest.raises(ValueError, match='^env_num=4 envs cannot be divided evenly among 3 workers$'):
        train(task, tmp_path / 'uneven', settings=settings, workers=3)
    figures = []
    for workers in (None, 2):
        folder = tmp_path / str(workers)
        assert train(task, folder, settings=settings, threads=1, workers=workers).finished
        figures.append([(each.mean_return, each.mean_length, each.action_std) for each in read_progress(folder)])
    assert figures[0] == figures[1]
    assert len(figures[0]) == 2
