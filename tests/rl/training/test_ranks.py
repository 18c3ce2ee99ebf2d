"""Ranks: what several processes learn together, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import rank_bodies
import torch
from typer.testing import CliRunner, Result

from internutopia.cli.commands import app
from internutopia.rl.training.checkpoints import newest_checkpoint, read_checkpoint
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.ranks import run_ranks
from internutopia.rl.training.run_folder import RunRecord, read_progress, read_run
from internutopia.rl.training.tasks import find_task
from internutopia.rl.training.train import train

ID = 'InternUtopia/CartPole-v0'
PATIENCE = 300.0  # s
ROUNDING = 1e-6  # of float32 around 1


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    return run_ranks(['cpu', 'cpu'], function, arguments, report=lambda _: None, stopped=lambda: False)


def after_updates(folder: Path, count: int, action: Callable[[], None]) -> None:
    """Do something in another thread when a run has made so many updates."""

    def wait() -> None:
        while len(read_progress(folder)) < count:
            time.sleep(0.01)
        action()

    threading.Thread(target=wait, daemon=True).start()


def ranks() -> list[BaseProcess]:
    """The processes of trainings that run."""
    return [each for each in multiprocessing.active_children() if each.name.startswith('rank ')]


@pytest.mark.nightly
def test_ctrl_c_ends_all_with_a_checkpoint_that_one_process_goes_on_with(tmp_path: Path) -> None:
    folder = tmp_path / 'run'

    def interrupt() -> None:
        for process in ranks():  # a terminal tells all
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    after_updates(folder, 2, interrupt)
    small = ['--env-num', 4, '--iterations', 100_000, '--setting', 'num_steps=8', '--setting', 'save_every=1000000']
    result = call('train', ID, '--nproc', 2, '--threads', 1, '--out', folder, *small)
    assert result.exit_code == 128 + signal.SIGINT, result.output
    assert f'resume with: internutopia train {ID} --out {folder} --resume' in result.stdout
    assert ranks() == []
    assert (read_run(folder).nproc, read_run(folder).training.env_num) == (2, 4)
    done = len(read_progress(folder))
    assert done >= 2 and newest_checkpoint(folder) == folder / f'model_{done - 1}.pt'
    before = read_checkpoint(folder / f'model_{done - 1}.pt')

    result = call('train', ID, '--out', folder, '--resume', '--nproc', 1, '--iterations', done + 1, '--threads', 1)
    assert result.exit_code == 0, result.output
    assert read_run(folder).nproc == 1
    steps = [line.steps for line in read_progress(folder)]
    assert steps == [*(2 * 4 * 8 * update for update in range(1, done + 1)), 2 * 4 * 8 * done + 4 * 8]
    after = read_checkpoint(folder / f'model_{done}.pt')
    adam = [content['optimizer_state_dict']['state'][0]['step'].item() for content in (before, after)]
    assert adam[0] > 0 and adam[1] * done == adam[0] * (done + 1)


@pytest.mark.nightly
def test_what_a_rank_raises_says_which_it_was() -> None:
    with pytest.raises(ZeroDivisionError, match='by the broom') as raised:
        run(rank_bodies.raise_in_rank_1)
    (note,) = raised.value.__notes__
    assert note.startswith('in rank 1 of 2:\n') and 'rank_bodies.py' in note
    assert ranks() == []


@pytest.mark.nightly
def test_a_rank_that_dies_ends_all(tmp_path: Path) -> None:
    folder = tmp_path / 'run'

    def kill() -> None:
        (process,) = (each for each in ranks() if each.name == 'rank 1 of 2')
        process.kill()

    after_updates(folder, 2, kill)
    endless = ['--env-num', 4, '--iterations', 100_000, '--setting', 'num_steps=8', '--setting', 'save_every=1']
    result = call('train', ID, '--nproc', 2, '--threads', 1, '--out', folder, *endless)
    assert result.exit_code == 2
    *_, message, way_out = result.stderr.splitlines()
    assert re.match(rf'internutopia train {ID}: rank 1 of 2 \(process \d+\) was killed by SIGKILL', message), message
    assert '--resume' in way_out
    assert ranks() == []
    assert newest_checkpoint(folder) is not None


@pytest.mark.nightly
def test_ranks_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / 'run'
    start = 'from internutopia.cli import main; main()'
    endless = ['--env-num', '4', '--iterations', '100000', '--setting', 'num_steps=8']
    arguments = ['train', ID, '--nproc', '2', '--threads', '1', '--out', str(folder), *endless]
    with subprocess.Popen([sys.executable, '-c', start, *arguments], stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(read_progress(folder)) > 1)
        tasks = Path(f'/proc/{process.pid}/task').glob('*/children')
        pids = [int(pid) for task in tasks for pid in task.read_text().split()]
        assert len(pids) >= 2
        process.kill()
    wait_until(lambda: not any(Path(f'/proc/{pid}').exists() for pid in pids))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.nightly
def test_ranks_learn_from_different_data_with_the_same_networks(tmp_path: Path) -> None:
    settings = find_task(ID).settings(env_num=4, num_steps=8, iterations=3, epochs=2, normalize=True)
    record = RunRecord(id=ID, training=settings, nproc=2)
    named = ID.rpartition(':')[0]
    assert run(rank_bodies.train_watched, tmp_path, record, named, tmp_path / 'run', None, 1, None, None).finished
    first, second = (torch.load(tmp_path / f'{rank}.pt') for rank in range(2))
    for own, other in zip(first['observations'], second['observations'], strict=True):
        assert not torch.isclose(own, other).all(1).any()  # no row is the same
    for network in ('actor', 'critic'):
        for name, value in first[network].items():
            assert torch.equal(value, second[network][name]), (network, name)

    gradients = [each[name] for name in ('own', 'averaged') for each in (first, second)]
    assert len(first['own']) == 3 * 2 * settings.mini_batches
    for own, other, *averaged in zip(*gradients, strict=True):
        assert not torch.allclose(own, other)
        for each in averaged:
            torch.testing.assert_close(each, (own + other) / 2, rtol=0.0, atol=ROUNDING)

    everything = torch.cat(first['observations'] + second['observations'])
    assert first['actor']['obs_normalizer.count'] == len(everything) == 2 * 3 * 4 * 8
    for name, expected in (('_mean', everything.mean(0)), ('_var', everything.var(0, correction=0))):
        torch.testing.assert_close(first['actor'][f'obs_normalizer.{name}'][0], expected, rtol=0.0, atol=10 * ROUNDING)


@pytest.mark.nightly
def test_two_ranks_learn_what_one_process_does(tmp_path: Path) -> None:
    logged = []
    for nproc in (1, 2):
        folder, settings = tmp_path / str(nproc), {'env_num': 64 // nproc, 'iterations': 40}
        result = train(find_task(ID), folder, settings=settings, threads=1, nproc=nproc)
        assert result.progress[-1].steps == 64 * result.settings.num_steps * 40
        logged.append(result.progress[-1].mean_length)
        trained = load_trained(folder)
        evaluation = evaluate(trained.act, trained.task.config(16, threads=1), seconds=10.0)
        assert evaluation.mean_length > 450  # of 500, on any processor
    assert max(logged) < 1.5 * min(logged), logged


def test_what_cannot_be_combined_is_refused(tmp_path: Path) -> None:
    result = call('train', ID, '--nproc', 2, '--workers', 2, '--out', tmp_path / 'run')
    assert result.exit_code == 2 and 'workers=2 and nproc=2 cannot be combined' in result.stderr
    assert not (tmp_path / 'run').exists()
