"""Parts of the commands that evaluate a policy on a list of episodes: the run, its report and films."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from internutopia.cli.options import RecordOptions, check_results, interruption_hint, write_json
from internutopia.cli.run import PATIENCE
from internutopia.util.interrupts import Interruption, interrupts
from internutopia.util.progress import progress_bar

if TYPE_CHECKING:
    from internutopia.config import SimConfig, TaskCfg
    from internutopia.evaluation.arm_mapper import ArmForm
    from internutopia.evaluation.estimates import Estimate
    from internutopia.evaluation.policy import Policy
    from internutopia.evaluation.policy_run import OnError, PolicyRun, RunTimes

_SHOWN = 5  # faults that are listed one by one


@dataclass(frozen=True)
class PolicyEvaluation:
    """An evaluation of a policy, as its command was given it.

    Attributes:
        folder: folder of the results.
        again: command that resumes it.
        recording: options of the dataset.
        resume: True if it goes on; otherwise it starts over.
        processes: number of worker processes; None: this one.
    """

    folder: Path
    again: str
    recording: RecordOptions
    resume: bool
    processes: int | None

    @property
    def results(self) -> Path:
        """The results file."""
        return self.folder / 'results.jsonl'

    def check(self, overwrite: bool, films: bool) -> None:
        """Check options before anything starts. ValueError; ImportError if films cannot be made."""
        from internutopia.rendering.video import Video

        self.recording.check()
        check_results(self.results, self.resume, overwrite)
        if films:
            Video(Path('film.mp4'), rate=1.0).close()

    def run(
        self,
        tasks: Sequence[TaskCfg],
        simulator: SimConfig,
        env_num: int,
        policy: Policy,
        name: Callable[[Any], str],
        on_error: OnError = 'skip',
        failed: Callable[[Any], dict[str, Any]] = lambda task: {},
        form: ArmForm | None = None,
    ) -> tuple[PolicyRun, Interruption]:
        """Run all episodes that have no result yet, in this many envs per process at most.

        Args:
            tasks: the episodes.
            simulator: simulation settings.
            env_num: number of envs per process, at most.
            policy: the policy.
            name: names a task's episode.
            on_error: rule for episodes whose policy fails.
            failed: returns the metrics of those that have failed by it.
            form: arm and mapping in whose form they are recorded; None: as it was seen and commanded.
        """
        from internutopia.config import Config
        from internutopia.config.config import RayDistributionCfg
        from internutopia.core.vec_env import Env
        from internutopia.evaluation.policy_run import PolicyRun

        self.folder.mkdir(parents=True, exist_ok=True)
        config = Config(
            simulator=simulator,
            env_num=min(env_num, len(tasks)),
            task_configs=[*tasks],
            metrics_save_path=str(self.results),
            resume=self.resume,
        )
        if self.processes is not None:
            config = config.distribute(RayDistributionCfg(proc_num=self.processes))
        recorder = self.recording.recorder(config, form)
        with interrupts() as interruption, closing(Env(config)) as env:
            if not self.resume:
                env.results.start_over()
            run = PolicyRun(env, policy, name, on_error, failed=failed)
            left = len(tasks) - len(env.task_config_manager.done)

            def on_step(ended: int) -> bool:
                for _ in range(ended):
                    advance()
                return not interruption.is_set()

            with (
                progress_bar('episodes', left) as advance,
                interruption_hint(f'stopped before the end; resume with: {self.again}'),
                self.recording.attached(env, recorder),
                interruption.deferred(PATIENCE),
            ):
                run.run(on_step)
        return run, interruption

    def write_report(self, report: Mapping[str, Any]) -> Path:
        """Write the report; returns the file."""
        return write_json(self.folder / 'report.json', report)

    def conclude(self, run: PolicyRun, interruption: Interruption, missing: int, total: int) -> int:
        """Print what went wrong and how to go on; returns the exit code: 1 too if the policy failed in all episodes."""
        if run.failures:
            print(f'the policy failed in {len(run.failures)} episodes{listed(run.failures)}', file=sys.stderr)
        if run.stopped:
            print(f'stopped: {run.stopped}', file=sys.stderr)
        if missing:
            print(f'{missing} of {total} episodes have no result; resume with: {self.again}')
        return interruption.exit_code or int(bool(missing) or len(run.failures) >= total)


def described(times: RunTimes) -> list[str]:
    """Return lines that say what the time of a run was spent on."""
    if not times.calls:
        return []
    total = times.policy + times.env + (times.pictures or 0.0)
    parts = {
        'physics and tasks' if times.pictures is not None else 'envs, in their processes': times.env,
        'pictures': times.pictures or 0.0,
        'policy': times.policy - times.messages,
        'packing of messages': times.messages,
    }
    shares = ', '.join(f'{name} {seconds / total:.0%}' for name, seconds in parts.items() if seconds)
    calls, steps = times.calls, times.steps
    return [
        f'{calls} calls of the policy with {times.requests / calls:.1f} observations, {1e3 * times.policy / calls:.3g} '
        f'ms each; {steps} steps of envs, {steps / total:.0f} per second',
        f'time: {total:.3g} s, of which {shares}',
    ]


def listed(faults: Sequence[str]) -> str:
    """Format the first of some faults, and the number of the others."""
    more = f'\n  and {len(faults) - _SHOWN} more' if len(faults) > _SHOWN else ''
    return ''.join(f'\n  {fault}' for fault in faults[:_SHOWN]) + more


def film_episode(
    task: TaskCfg,
    policy: Policy,
    name: Callable[[Any], str],
    simulator: SimConfig,
    file: Path,
    step_dt: float | None = None,
) -> None:
    """Run an episode again, and film it.

    Args:
        task: the episode.
        policy: policy that runs it.
        name: names a task's episode.
        simulator: simulation settings of the evaluation.
        file: film, `.mp4` or `.gif`.
        step_dt: duration of a step in the film [s]; None: that in the simulation.
    """
    from internutopia.cli.film import Film
    from internutopia.config import Config
    from internutopia.core.vec_env import Env
    from internutopia.evaluation.policy_run import PolicyRun

    with closing(Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))) as env:
        with Film(env, file, env_id=0, step_dt=step_dt) as film:

            def on_step(ended: int) -> bool:
                film.on_step()
                return True

            PolicyRun(env, policy, name).run(on_step)


def figure(estimate: Estimate | None, is_rate: bool) -> str:
    """Format an estimate with its interval below it."""
    if estimate is None:
        return '-'
    values = (f'{value:.1%}' if is_rate else f'{value:.3g}' for value in (estimate.mean, estimate.low, estimate.high))
    return '{}\n{}..{}'.format(*values)
