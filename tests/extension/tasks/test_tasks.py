"""Ends of the built-in tasks."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from internutopia.core.datahub import DataHub
from internutopia_extension.configs.tasks import FiniteStepTaskCfg, ManipulationTaskCfg

Run = Callable[..., Any]
PICK: dict[str, Any] = {'prompt': 'pick up the cup', 'target': 'cup', 'episode_idx': 0}


def ends_at(env: Any, env_id: int = 0, at_most: int = 20) -> int | None:
    """Number of steps until an env reports that it has ended."""
    for step in range(1, at_most + 1):
        if env.step([{}] * env.env_num)[2][env_id]:
            return step
    return None


def test_single_inference_task_never_ends(run: Run) -> None:
    assert ends_at(run()) is None


def test_single_inference_task_is_truncated_by_its_config(run: Run) -> None:
    env = run(max_episode_steps=3)
    ended = [(terminated, truncated) for _, _, [terminated], [truncated], _ in (env.step([{}]) for _ in range(3))]
    assert ended == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize('max_steps', [1, 4])
def test_finite_step_task_ends_at_its_last_step(run: Run, max_steps: int) -> None:
    env = run(task=FiniteStepTaskCfg, max_steps=max_steps, episodes=2)
    assert ends_at(env) == max_steps
    env.reset()
    assert ends_at(env) == max_steps


def test_manipulation_task_ends_one_step_after_its_last(run: Run) -> None:
    env = run(task=ManipulationTaskCfg, max_steps=3, **PICK)
    assert env.runner.current_tasks['0'].prompt == 'pick up the cup'
    assert ends_at(env) == 4


def test_manipulation_task_ends_when_it_is_reported_finished(run: Run) -> None:
    env = run(task=ManipulationTaskCfg, max_steps=100, env_num=2, episodes=3, **PICK)
    env.step([{}, {}])
    reporter = threading.Thread(target=DataHub.set_episode_finished, args=(env.runner.env_id_to_task_name_map[1],))
    reporter.start()
    reporter.join()
    assert env.step([{}, {}])[2] == [False, True]
    env.reset([1])
    assert env.step([{}, {}])[2] == [False, False]


def test_a_report_does_not_outlive_its_task(run: Run) -> None:
    env = run(task=ManipulationTaskCfg, max_steps=100, **PICK)
    DataHub.set_episode_finished('0')
    env.close()
    assert not DataHub.get_episode_finished('0')
    assert ends_at(run(task=ManipulationTaskCfg, max_steps=100, **PICK)) is None
