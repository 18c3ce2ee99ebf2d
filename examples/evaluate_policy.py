"""A policy of one's own on a suite of tasks, as a script: it presses buttons.

`policy` goes down with closed fingers onto the button that the instruction names. The same from the command line, in
this folder, with videos, `--resume` and so on:

    internutopia evaluate policy InternUtopia/Tabletop --policy evaluate_policy:policy --tasks press_button
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from internutopia import Config, Env
from internutopia.evaluation.policy import FunctionPolicy
from internutopia.evaluation.policy_run import PolicyRun
from internutopia.evaluation.suite_report import read_results, summarize
from internutopia.evaluation.suites import episode_name, find_suite
from internutopia_extension import import_extensions

DOWN = [0.0, 1.0, 0.0, 0.0]  # (w, x, y, z): the gripper points to the floor
ABOVE, STRIDE = 0.1, 0.02  # m, height above the button, and on the way down in a step
RESULTS = Path('out/evaluate_policy.jsonl')


def policy(task: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Start an episode; returns the function that acts in it."""
    print(f'episode {task.number} of {task.suite_task}: {task.instruction}')

    def act(obs: Mapping[str, Any]) -> dict[str, Any]:
        (top,) = (pose[:3] for name, pose in obs['task']['objects'].items() if name.startswith('console/'))
        tip = obs['controllers']['arm_ik_controller']['eef_position']
        away = np.linalg.norm((tip - top)[:2])
        target = [*top[:2], tip[2] - STRIDE if away < 0.02 else top[2] + ABOVE]
        return {'arm_ik_controller': [target, DOWN], 'gripper_controller': ['close']}

    return act


if __name__ == '__main__':
    import_extensions()
    suite = find_suite('InternUtopia/Tabletop')
    tasks = suite.task_configs(['press_button'], ['none', 'unseen_objects'], episodes=4)
    RESULTS.parent.mkdir(exist_ok=True)
    config = Config(simulator=suite.simulator(None), env_num=4, task_configs=tasks, metrics_save_path=str(RESULTS))
    with closing(Env(config)) as env:
        env.results.start_over()
        run = PolicyRun(env, FunctionPolicy(policy), episode_name, on_error='fail')
        run.run()
    rows = summarize(read_results(RESULTS, tasks))
    for row in rows:
        print(f'{row.task}, {row.perturbation}: {row.success.mean:.0%} of {row.episodes} episodes')
    assert not run.failures and rows[-1].success.mean == 1.0
