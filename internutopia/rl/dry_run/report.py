"""Report of a dry run: whether a policy does as commanded, and if not, what is out of range and what would be right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.robot import RobotCfg
from internutopia.model.kinematics import outside_limits
from internutopia.rl.dry_run.inputs import normalizer_of, out_of_range
from internutopia.rl.dry_run.mistakes import alternatives, leg_orders
from internutopia.rl.dry_run.trials import BAD, Trial, TrialRun, Trials, run_trials, walking_command
from internutopia.rl.policy import PolicyMetadata, load_policy, network_file
from internutopia.util.progress import progress_bar

BETTER = 0.6  # of the cost of what is given, at most, of what is proposed
MOST = 3  # proposals
SOON = 0.8  # s, in which a robot falls that its gains do not hold
_RATES = (30.0, 120.0)  # 1/s, of nearly all policies
NONE = 1e-9  # scale of actions that do nothing
_known: dict[Any, list[str]] = {}
_AT_ONCE = 32  # descriptions: of more, each would look at too many envs that are not its own


@dataclass(frozen=True)
class DryRun:
    """Result of a dry run."""

    given: Trials
    trials: dict[str, Trial]
    """What it was commanded, and what came of it; one with actions of zero, by its gains and default pose alone."""
    faults: list[str]
    """What is wrong, a sentence each; none if the robot does as commanded."""
    proposals: list[tuple[str, Trials]]
    """What to change, and what it does then, best first."""

    @property
    def fails(self) -> bool:
        """True if the robot falls, or is far from doing as commanded."""
        return self.given.cost > BAD


def dry_run(file: Path, robot: RobotCfg, search: bool = True, threads: int | None = None) -> DryRun:
    """Try the policy that a YAML file describes, on flat ground, in its own envs.

    Args:
        file: the policy.
        robot: what walks; where it stands and what it carries do not matter.
        search: whether likely mistakes are undone, one at a time, if the robot does not do as commanded.
        threads: of physics; None means one per core.

    Errors are those of a policy that does not fit the robot.
    """
    metadata = load_policy(file).metadata
    run = run_trials(file, [metadata, metadata.update(scale=NONE)], robot, threads)
    given, passive = run.trials
    forward, _, yaw_rate = walking_command(metadata)
    stand, still = 'commanded to stand', 'with actions of zero'
    walk = f'commanded to walk at {forward:.2g} m/s and turn at {yaw_rate:.2g} rad/s'
    trials = {stand: given.stood, walk: given.walked, still: passive.stood}
    faults = [f'{what}, it {describe(trials[what])}' for what in (stand, walk) if trials[what].cost > BAD]
    if faults:
        fell_after = trials[still].fell_after
        if fell_after is not None and fell_after < SOON:
            faults.append(f'{still} it falls after {fell_after:.1f} s: stiffness, damping or offset do not hold it')
        normalizer = normalizer_of(file, run.inputs.shape[1])
        faults += out_of_range(run.inputs, metadata.observations, run.input_sizes, normalizer)
    rate = 1.0 / metadata.step_dt
    if not _RATES[0] <= rate <= _RATES[1]:
        faults.append(f'step_dt {metadata.step_dt:g} s means {rate:.0f} actions per second: is it sim.dt * decimation?')
    proposals = _proposals(file, metadata, robot, run, threads) if search and given.cost > BAD else []
    return DryRun(given, trials, faults, proposals)


def first_faults(file: Path, robot: RobotCfg) -> list[str]:
    """Return the faults that a dry run finds without a search; it is made once per process, policy and robot."""
    own = robot.model_dump_json(exclude={'name', 'prim_path', 'position', 'controllers', 'sensors'})
    key = file, file.read_bytes(), network_file(file).stat().st_mtime_ns, own
    if key not in _known:
        try:
            _known[key] = dry_run(file, robot, search=False, threads=1).faults
        except Exception as error:  # of a robot class that needs other surroundings; its own run continues
            _known[key] = [f'it cannot be tried ({type(error).__name__}: {error})']
    return _known[key]


def describe(trial: Trial) -> str:
    """Return the figures of a trial in words."""
    if trial.fell_after is not None:
        return f'falls after {trial.fell_after:.1f} s'
    return (
        f'is {trial.speed_error:.2f} m/s and {trial.turn_error:.2f} rad/s off, leans by '
        f'{math.degrees(trial.lean):.0f} degrees, and its joints shake with {trial.shaking:.0f} rad/s²'
    )


def _proposals(
    file: Path, metadata: PolicyMetadata, robot: RobotCfg, run: TrialRun, threads: int | None
) -> list[tuple[str, Trials]]:
    """Return what would do as commanded; orders of legs that are not common are tried if nothing else does."""
    for changes in (alternatives, leg_orders):
        possible = [
            (name, each)
            for name, each in changes(metadata, run.dof_names).items()
            if not outside_limits(each.joint_names, each.offset, _ranges(each, run))
        ]
        good: list[tuple[str, Trials]] = []
        with progress_bar('trying changes of the description', len(possible)) as advance:
            for start in range(0, len(possible), _AT_ONCE):
                some = possible[start : start + _AT_ONCE]
                trials = run_trials(file, [each for _, each in some], robot, threads).trials
                for (name, _), trial in zip(some, trials, strict=True):
                    if trial.cost < min(BAD, BETTER * run.trials[0].cost):
                        good.append((name, trial))
                    advance()
        if good:
            return sorted(good, key=lambda each: each[1].cost)[:MOST]
    return []


def _ranges(metadata: PolicyMetadata, run: TrialRun) -> NDArray[np.float64]:
    return run.joint_ranges[[run.dof_names.index(name) for name in metadata.joint_names]]
