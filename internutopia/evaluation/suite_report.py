"""Suite report: the results of a suite's episodes, and the success rate for each task and perturbation."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from internutopia.config import TaskCfg
from internutopia.evaluation.estimates import CONFIDENCE, INTERVALS, Estimate, mean, rate
from internutopia.evaluation.policy_run import POLICY_ERROR, RunTimes

ALL = 'all'
"""Name of all tasks, or all perturbations, together."""


@dataclass(frozen=True)
class SuiteRow:
    """Figures of the episodes of a task under a perturbation.

    Attributes:
        task: name of the task, or `ALL`.
        perturbation: name of the axis, or `ALL`.
        success: share of the episodes that succeeded; those whose policy failed did not.
        steps: number of steps of those that succeeded; None if there are none.
        ends: how many ended how: `'success'`, `'steps'` (out of steps), `'policy'` (it failed) or `'error'` (the
            simulation did).
    """

    task: str
    perturbation: str
    success: Estimate
    steps: Estimate | None
    ends: dict[str, int]

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return self.success.count


def read_results(path: str | os.PathLike[str], tasks: Sequence[TaskCfg]) -> list[dict[str, Any]]:
    """Return the result of each episode of a suite in a results file, in the order of the episodes.

    Args:
        path: the results file.
        tasks: task configs of the run.
    """
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [_result(line, tasks[line['task_index']]) for line in sorted(lines, key=lambda line: line['episode_id'])]


def _result(line: Mapping[str, Any], task: Any) -> dict[str, Any]:
    success = float((line['metrics'].get('task') or {}).get('success', 0.0)) if line['error'] is None else 0.0
    end = 'success' if success else 'steps'
    if line['error'] is not None:
        end = 'policy' if line['error'].startswith(POLICY_ERROR) else 'error'
    return {
        'task': task.suite_task,
        'perturbation': task.perturbation,
        'number': task.number,
        'instruction': task.instruction,
        'success': success,
        'steps': line['steps'],
        'end': end,
        'error': line['error'],
    }


def summarize(results: Sequence[Mapping[str, Any]]) -> list[SuiteRow]:
    """Return a row for each task and perturbation, for each perturbation of several tasks, and for all."""
    tasks = list(dict.fromkeys(result['task'] for result in results))
    axes = list(dict.fromkeys(result['perturbation'] for result in results))
    groups = [(task, axis) for task in tasks for axis in axes]
    groups += [(ALL, axis) for axis in axes if len(tasks) > 1]
    groups += [(ALL, ALL)] if len(axes) > 1 else []
    return [row for task, axis in groups if (row := _row(task, axis, results)) is not None]


def _row(task: str, axis: str, results: Iterable[Mapping[str, Any]]) -> SuiteRow | None:
    chosen = [each for each in results if task in (ALL, each['task']) and axis in (ALL, each['perturbation'])]
    if not chosen:
        return None
    steps = [float(each['steps']) for each in chosen if each['success']]
    return SuiteRow(
        task,
        axis,
        rate([each['success'] for each in chosen]),
        mean(steps) if steps else None,
        dict(sorted(Counter(each['end'] for each in chosen).items())),
    )


def report(results: Sequence[Mapping[str, Any]], conditions: Mapping[str, Any], times: RunTimes) -> dict[str, Any]:
    """Return the contents of a report file: conditions, times of this part of the run, the rows, and all episodes."""
    return {
        **conditions,
        'confidence': CONFIDENCE,
        'intervals': INTERVALS,
        'times': asdict(times),
        'summary': [asdict(row) for row in summarize(results)],
        'episodes': list(results),
    }
