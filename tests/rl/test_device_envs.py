"""`VectorEnv(arrays='torch')` on `mujoco_warp`: the same as with numpy arrays, and nothing waits for the device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from captured import capture_rules
from device_poles import N, assert_same, on_device, on_warp, poles, pushes
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st
from markers import slow_but
from stand_in_gpu import on_a_gpu
from torch.profiler import ProfilerActivity, profile

from internutopia.config import Config
from internutopia.config.learning import (
    CommandTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    TermCfg,
)
from internutopia.rl import VectorEnv
from internutopia.rl.task_envs import with_learning
from internutopia.util import log
from internutopia.util.arrays import to_host
from internutopia_extension.learning_tasks import cart_pole, jetbot_goal, lift, velocity

MODES = tuple(AutoresetMode)
# what asks a device for values, so that the host has to wait for them
WAITING = {'aten::item', 'aten::_local_scalar_dense', 'aten::nonzero', 'aten::is_nonzero', 'aten::masked_select'}


POLE = [ObservationTermCfg(term='joint_positions'), ObservationTermCfg(term='joint_velocities')]
GROUPS = {
    'now': POLE,
    'before': ObservationGroupCfg(terms=POLE, history_length=3),
    'stacked': ObservationGroupCfg(terms=POLE[1:], history_length=2, stacked=True),
    'critic': ObservationGroupCfg(terms=POLE[:1], history_length=2),
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('mode', 'changes'),
    [*((mode, {}) for mode in MODES), (AutoresetMode.SAME_STEP, {'observations': GROUPS})],
    ids=lambda value: value.name if isinstance(value, AutoresetMode) else 'groups' if value else 'array',
)
def test_the_same_as_with_numpy_arrays(mode: AutoresetMode, changes: dict[str, Any]) -> None:
    config = with_learning(poles(), **changes)
    host, device = VectorEnv(config, autoreset_mode=mode), on_device(config, mode.value)
    with closing(host), closing(device):
        assert_same(host.reset(seed=0), device.reset(seed=0))
        for k in range(30):
            result = host.step(pushes(k))
            assert_same(result, device.step(torch.from_numpy(pushes(k))))
            assert_same(host.critic_observations(), device.critic_observations())
            ended = result[2] | result[3]
            if mode is AutoresetMode.DISABLED and ended.any():
                options = {'reset_mask': ended}
                assert_same(host.reset(options=options), device.reset(options=options))
        assert host.core.episode_ids.max() > 2 * N


@pytest.fixture(scope='module', params=slow_but('SameStep', of=['NextStep', 'SameStep']))
def twins(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Envs with arrays on the host and on the device; episodes are cut after 7 steps at the latest."""
    config = poles()
    config.task_configs[0].max_episode_steps = 7
    with (
        closing(VectorEnv(config, autoreset_mode=request.param)) as host,
        closing(on_device(config, request.param)) as device,
    ):
        yield host, device


@pytest.mark.nightly
@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.lists(st.floats(-1.0, 1.0, width=32), min_size=N, max_size=N),  # actions
            st.lists(st.booleans(), min_size=N, max_size=N).filter(any),  # who is reset
        ),
        max_size=12,
    )
)
def test_the_same_whatever_is_done(twins: tuple[Any, Any], course: list[list[float] | list[bool]]) -> None:
    host, device = twins
    assert_same(host.reset(seed=0), device.reset(seed=0))
    for values in course:
        if isinstance(values[0], bool):
            options = {'reset_mask': np.array(values)}
            results = host.reset(options=options), device.reset(options=options)
        else:
            actions = np.array(values, np.float32)[:, None]
            results = host.step(actions), device.step(torch.from_numpy(actions))
        assert_same(*results)


@pytest.mark.nightly
@pytest.mark.parametrize('order', slow_but('once', of=['once', 'cycle', 'shuffle']))
def test_several_tasks_and_queues_that_run_dry(
    order: str, tmp_path: Path, write_model: Callable[[str, str], str]
) -> None:
    """Scenes of two structures, so that envs change their group; the host gives them their episodes."""
    short = poles()
    scenes = [None, write_model('floor', '<worldbody><geom type="plane" size="9 9 1" pos="0 0 -3"/></worldbody>')]
    task = short.task_configs[0]
    tasks = [task.model_copy(update={'scene_asset_path': scenes[k % 2]}) for k in range(6)]
    results = []
    for arrays in ('numpy', 'torch'):
        path = tmp_path / f'{arrays}.jsonl'
        config = short.model_copy(
            update={'task_configs': tasks, 'episode_order': order, 'seed': 3, 'env_num': 4, 'metrics_save_path': path}
        )
        with closing(VectorEnv(config, autoreset_mode=AutoresetMode.SAME_STEP, arrays=arrays)) as envs:  # type: ignore[arg-type]
            envs.reset(seed=1)
            steps = [envs.step(pushes(k, 4)) for k in range(32)]
        results.append((steps, path.read_text()))
    for host, device in zip(results[0][0], results[1][0], strict=True):
        assert_same(host, device)
    assert results[0][1] == results[1][1] and results[0][1].count('\n') >= (6 if order == 'once' else 7)


@pytest.mark.slow
def test_results_of_episodes_that_the_device_starts(tmp_path: Path) -> None:
    lines = []
    for arrays in ('numpy', 'torch'):
        path = tmp_path / f'{arrays}.jsonl'
        config = poles(metrics_save_path=path)
        with closing(VectorEnv(config, autoreset_mode=AutoresetMode.NEXT_STEP, arrays=arrays)) as envs:  # type: ignore[arg-type]
            envs.reset(seed=1)
            for k in range(30):
                envs.step(pushes(k))
        lines.append([json.loads(line) for line in path.read_text().splitlines()])
    assert len(lines[0]) > 2 * N
    for host, device in zip(*lines, strict=True):
        assert host.pop('metrics')['return'] == pytest.approx(device.pop('metrics')['return'], abs=1e-5)
        assert host == device


@pytest.mark.nightly
@pytest.mark.parametrize(
    'make',
    [
        lambda: on_warp(jetbot_goal.config(4, 0)),
        lambda: on_warp(velocity.config(4, 0)),
        lambda: on_warp(velocity.config(4, 0, robot='aliengo')),
        lambda: on_warp(lift.config(4, 0)),
    ],
    ids=['jetbot', 'h1', 'aliengo', 'franka'],
)
def test_nothing_waits_for_the_device(make: Callable[[], Config], tmp_path: Path) -> None:
    """Randomizations, curriculum, pushes, new commands and results of episodes included."""
    config = make().model_copy(update={'metrics_save_path': tmp_path / 'results.jsonl'})
    with on_a_gpu() as no_waiting_here, closing(on_device(config, 'SameStep')) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape, device=envs.device)
        for env_id in (2, 3):  # all that is made once is made now
            envs.core.state.steps[env_id] = 10**6
            envs.step(actions)
            envs.critic_observations()
        envs.core.state.steps[1] = 10**6  # one ends by its limit
        with no_waiting_here(), capture_rules() as checked, profile(activities=[ProfilerActivity.CPU]) as profiler:
            *_, truncated, _ = envs.step(actions)
            critic = envs.critic_observations()
        assert {'step', 'reset'} <= {key[0] for key in checked}
        assert truncated.tolist() == [False, True, False, False] and torch.isfinite(critic).all()
        called = {event.key for event in profiler.key_averages()}
        assert 'aten::where' in called and not called & WAITING
        assert envs.core.state.steps[1] == 0


def test_tensors_are_the_memory_of_the_engine() -> None:
    with closing(on_device(poles())) as envs:
        envs.reset()
        world: Any = envs.core.runner.world
        side = world.batch_arrays(world.env_batches[0])
        side.write('qvel')[:, 0] = 1.0
        world.version += 1
        assert envs.core.state.joint_velocities[:, 0].tolist() == [1.0] * N
        assert side.read('qvel').data_ptr() == world.env_batches[0].batch.field('qvel').array.ptr
        envs.step(torch.zeros(N, 1))
        assert (side.read('qpos')[:, 0] > 0.005).all()


@pytest.mark.slow
def test_others_are_untouched_when_some_start_anew() -> None:
    """To the bit, whatever is randomized at the start: poses, velocities, masses, frictions, gains, commands."""
    config = on_warp(velocity.config(4, 0))
    learning = config.task_configs[0].learning
    assert learning is not None
    learning.randomizations += [
        RandomizationTermCfg(term='mass', params={'link': 'pelvis', 'factor': (0.5, 2.0)}),
        RandomizationTermCfg(term='friction', params={'coefficient': (0.5, 2.0)}),
        RandomizationTermCfg(term='gains', params={'stiffness': (0.5, 2.0), 'damping': (0.5, 2.0)}),
    ]
    with closing(on_device(config, 'Disabled', learning=learning)) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape, device=envs.device)
        for _ in range(3):
            envs.step(actions)
        world: Any = envs.core.runner.world
        batch = world.env_batches[0].batch

        def everything() -> list[torch.Tensor]:
            fields = [batch.field(name).tensor() for name in ('time', 'qpos', 'qvel', 'ctrl', 'qacc_warmstart')]
            model = [batch.expand(name).tensor() for name in sorted(batch._batched)]
            state = envs.core.state
            return [values.clone() for values in (*fields, *model, state.steps, *state.commands.values())]

        before = everything()
        envs.reset(options={'reset_mask': np.array([True, False, True, False])})
        after = everything()
        for old, new in zip(before, after, strict=True):
            assert torch.equal(old[1::2], new[1::2])
        changed = [not torch.equal(old[::2], new[::2]) for old, new in zip(before, after, strict=True)]
        assert sum(changed) >= 10
        body = world.articulation('h1', 0).body('pelvis')
        masses = body.get_masses().tolist()
        assert len(set(masses)) == 4


@pytest.mark.slow
def test_what_is_random_is_random() -> None:
    """Each env and each episode draws its own numbers, from the seed."""

    def run(seed: int) -> np.ndarray:
        with closing(on_device(on_warp(cart_pole.config(64, 0)))) as envs:
            first = envs.reset(seed=seed)[0].clone()
            return torch.stack([first, envs.reset()[0].clone()]).cpu().numpy()

    first, again, other = run(1), run(1), run(2)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert len(np.unique(first[..., 0])) == 128 and np.abs(first).max() <= 0.05
    np.testing.assert_allclose(first.std(axis=(0, 1)), 0.1 / np.sqrt(12), rtol=0.15)


@pytest.mark.nightly
def test_long_runs_have_the_statistics_of_the_cpu_engine() -> None:
    """Poles that are pushed at random fall after as many steps, at angles and places as wide apart."""

    def episodes(config: Config, arrays: Any) -> list[np.ndarray]:
        pushed = np.random.default_rng(5)
        with closing(VectorEnv(config, autoreset_mode='SameStep', arrays=arrays)) as envs:
            envs.reset(seed=0)
            found: list[list[np.ndarray]] = [[], [], []]
            for _ in range(80):
                *_, info = envs.step(pushed.uniform(-1.0, 1.0, (64, 1)).astype(np.float32))
                if '_final_obs' in info:
                    ended = to_host(info['_final_obs'])
                    final = to_host(info['final_obs'])[ended]
                    for values, column in zip(
                        found, (to_host(info['episode_length'])[ended], *final.T[:2]), strict=True
                    ):
                        values.append(column)
        return [np.concatenate(values).astype(float) for values in found]

    cpu = cart_pole.config(64, 0)
    for host, device in zip(episodes(cpu, 'numpy'), episodes(on_warp(cpu), 'torch'), strict=True):
        assert len(host) > 100 and len(device) > 100
        spread = np.sqrt(host.var() / len(host) + device.var() / len(device))
        assert abs(host.mean() - device.mean()) < 3.0 * spread
        assert host.std() == pytest.approx(device.std(), rel=0.25)


@pytest.mark.parametrize('value', [torch.nan, -torch.inf, 1.1e10, -1e25])
def test_actions_that_no_engine_takes_cut_their_env(value: float) -> None:
    with closing(on_device(poles())) as envs:
        envs.reset()
        bad = torch.ones(N, 1)
        bad[2] = value
        _, rewards, terminated, truncated, info = envs.step(bad)
        assert terminated.tolist() == info['failed'].tolist() == [k == 2 for k in range(N)]
        assert not truncated.any() and rewards[2] == 0.0 and (rewards[3:] > 0).all()
        obs, *_, info = envs.step(torch.ones(N, 1))
        assert not info['failed'].any() and torch.isfinite(obs).all() and envs.core.state.steps[2] == 0


def test_an_env_that_diverges_is_cut_alone(caplog: pytest.LogCaptureFixture) -> None:
    with closing(on_device(poles(), 'SameStep')) as envs:
        envs.reset()
        last = envs.step(torch.ones(N, 1))[0]
        world: Any = envs.core.runner.world
        world.batch_arrays(world.env_batches[0]).write('qvel')[4] = 1e12
        _, _, terminated, truncated, info = envs.step(torch.zeros(N, 1))
        assert terminated.tolist() == info['failed'].tolist() == [k == 4 for k in range(N)] and not truncated.any()
        assert torch.equal(info['final_obs'][4], last[4])
        obs = envs.step(torch.zeros(N, 1))[0]
        assert torch.isfinite(obs).all() and obs[4].abs().max() < 0.1


def test_choices_are_looked_up_on_the_device() -> None:
    config = poles()
    learning = config.task_configs[0].learning
    assert learning is not None
    learning.action.choices = [[-1.0], [0.0], [1.0]]
    with closing(on_device(config, learning=learning)) as envs:
        envs.reset()
        *_, info = envs.step(torch.tensor([0, 1, 2, 0, 7, -1]))
        assert info['failed'].tolist() == [False, False, False, False, True, True]
        assert envs.core.state.actions[:4, 0].tolist() == [-1.0, 0.0, 1.0, -1.0]
        with pytest.raises(ValueError, match='integers'):
            envs.step(torch.zeros(N))


def test_wrong_actions_and_arguments() -> None:
    with pytest.raises(ValueError, match="arrays='jax': expected 'numpy' or 'torch'"):
        VectorEnv(poles(), arrays='jax')  # type: ignore[arg-type]
    with closing(on_device(poles(), 'Disabled')) as envs:
        with pytest.raises(RuntimeError, match='reset'):
            envs.step(torch.zeros(N, 1))
        envs.reset()
        for wrong, message in ((torch.zeros(N), 'shape'), (torch.zeros(N, 1, dtype=torch.complex64), 'real numbers')):
            with pytest.raises(ValueError, match=message):
                envs.step(wrong)
        assert envs.core.state.steps.tolist() == [0] * N
        envs.core.state.steps[3] = 10**6
        envs.step(pushes(0))
        with pytest.raises(ValueError, match=r'envs \[3\] have ended'):
            envs.step(pushes(0))


def test_tensors_of_the_cpu_engine() -> None:
    """The same keyword on the CPU engine: tensors of the memory of numpy arrays."""
    config = cart_pole.config(N, 0)
    host, device = (VectorEnv(config, arrays=arrays) for arrays in ('numpy', 'torch'))  # type: ignore[arg-type]
    with closing(host), closing(device):
        assert_same(host.reset(seed=0), device.reset(seed=0))
        for k in range(30):
            assert_same(host.step(pushes(k)), device.step(torch.from_numpy(pushes(k))))
        with pytest.raises(ValueError, match='action of env 1 is not finite'):
            device.step(torch.tensor([[0.0], [torch.nan], *[[0.0]] * (N - 2)]))


@pytest.mark.slow
def test_delays_noise_commands_and_curriculum() -> None:
    """Delayed observations of envs that go on are not disturbed, and levels change where episodes ended."""
    config = poles()
    learning = config.task_configs[0].learning
    assert learning is not None
    learning.terms(privileged=False).append(ObservationTermCfg(term='joint_positions', delay=2))
    learning.commands['way'] = CommandTermCfg(term='uniform', params={'low': [0.0], 'high': [1.0]}, resample_time=0.05)
    learning.curricula.append(TermCfg(term='survival', params={'long': 0.0, 'short': 0.0, 'step': 0.25}))
    with closing(on_device(config, 'SameStep', learning=learning)) as envs:
        obs = [envs.reset(seed=0)[0].clone()]
        ends, commands = [], []
        for k in range(30):
            o, _, terminated, truncated, info = envs.step(pushes(k))
            obs.append(o.clone())
            ends.append(terminated | truncated)
            commands.append(envs.core.state.command('way')[:, 0].clone())
            assert torch.equal(info.get('_final_obs', ends[-1]), ends[-1])
        ended = torch.stack(ends).sum(0)
        assert (envs.core.state.levels == torch.clip(0.25 * ended, 0, 1)).all() and ended.max() > 1
        calm = 5  # the last env's pole falls first; this step lies before any end
        assert not any(ends[k].any() for k in range(calm))
        assert torch.allclose(obs[calm][:, 4:], obs[calm - 2][:, :2])
        changes = [int((commands[k] != commands[k - 1]).sum()) for k in range(1, calm)]
        assert changes == [0, 0, 0, N]  # after 5 steps of 0.01 s


@pytest.mark.nightly
def test_too_little_room_is_said_and_mended(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    from internutopia.engines.warp import batch

    monkeypatch.setattr(batch.Capacities, 'of', lambda model: batch.Capacities(1, 4))
    config = on_warp(velocity.config(2, 0))
    with caplog.at_level('WARNING', logger=log.name), closing(on_device(config)) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape, device=envs.device)
        obs = [envs.step(actions)[0] for _ in range(30)][-1]
        world: Any = envs.core.runner.world
        room = world.env_batches[0].batch.capacities
        assert room.contacts >= 8 and room.constraints >= 16
        assert 'left out in previous steps' in caplog.text and torch.isfinite(obs).all()
        assert envs.core.state.feet_contacts.any()
