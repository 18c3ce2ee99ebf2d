"""Loop of a training run: that of rsl_rl, with whole checkpoints, a log, and continuation of a stopped run.

A policy may begin as one that was trained before, from its policy file (`warm_start`).
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import distributed
from typing_extensions import override

from internutopia.config.learning import ObservationTermCfg
from internutopia.model.asset_paths import resolve
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.policy import METADATA_KEY, PolicyMetadata, TaskPolicyMetadata, parse_metadata
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.training.checkpoints import read_checkpoint
from internutopia.rl.training.ppo import BoundedPPO, MirroredSamples
from internutopia.rl.training.rsl_rl import MLPModel, OnPolicyRunner
from internutopia.rl.training.run_folder import Progress, append_progress, cut_progress
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import log
from internutopia.util.arrays import to_host
from internutopia.util.replacing import replacing

_LAST_SHARE = 0.1  # of the learning rate's bounds, after the last update
_RECENT = 100
"""Number of ended episodes that means are over."""


class Runner(OnPolicyRunner):
    """The runner of rsl_rl, in a folder; networks and data are on the device of the envs.

    In a process of a group (`torch.distributed`) it learns together with the others: they start with the networks of
    the first, average their gradients, and normalize by the observations of all. Only the first writes.

    Args:
        envs: what is learned from.
        settings: how.
        folder: where checkpoints, TensorBoard's event files and the log go; it is made with the first of them.
        report: called after each update.
    """

    def __init__(self, envs: RslRlVecEnv, settings: TrainingCfg, folder: Path, report: Callable[[Progress], None]):
        options, groups = settings.rsl_rl(), list(envs.get_observations().keys())
        if set(groups) == {'policy'}:
            options['obs_groups']['critic'] = ['policy']
        elif set(groups) != {'policy', 'critic'}:
            raise ValueError(
                f"observations: training takes the groups 'policy' and (optionally) 'critic', got {groups}"
            )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
            super().__init__(envs, options, str(folder), str(envs.device))
        self._folder, self._report = folder, report
        self._core = envs.envs.core
        if settings.start_from is not None:
            with envs.envs.local_core() as core:
                warm_start(self.alg.actor, settings.start_from, core)
        if settings.mirror_samples:
            with envs.envs.local_core() as core:
                self.alg.symmetry = MirroredSamples(core, envs.device)
        self._settings = settings
        self.logger.git_status_repos.clear()  # it would store their differences to the last commit
        # episodes of this process alone are logged: so that means lag no more than those over all of them would
        recent = max(_RECENT // self.gpu_world_size, 1)
        self.logger.rewbuffer, self.logger.lenbuffer = deque(maxlen=recent), deque(maxlen=recent)
        self._write_log = self.logger.log
        self.logger.log = self._log  # pyright: ignore[reportAttributeAccessIssue] - called with names only
        self._act = self.alg.act
        self.alg.act = self._act_unless_stopped  # pyright: ignore[reportAttributeAccessIssue]
        self._last = _last(())
        self.updates = 0
        """Number of updates made."""

    @override
    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint; a process killed meanwhile leaves the older ones as they are.

        OSError if it cannot be written; nothing of it is left then.
        """
        try:
            with replacing(Path(path)) as part:
                super().save(os.fspath(part), {**(infos or {}), 'level': float(self._core.state.levels.mean())})
        except (OSError, RuntimeError) as error:  # PyTorch does not report a full disk
            raise OSError(f'checkpoint {path} cannot be written (disk full?): {error}') from error

    @override
    def load(
        self, path: str, load_cfg: dict[str, Any] | None = None, strict: bool = True, map_location: str | None = None
    ) -> dict[str, Any]:
        """Read a checkpoint, whatever device it was written on, and cut the log back to it.

        ValueError if it cannot be read, or is of another network.
        """
        checkpoint = read_checkpoint(Path(path), map_location or self.device)  # theirs unpickles whatever is in it
        try:
            if self.alg.load(checkpoint, load_cfg, strict):
                self.current_learning_iteration = checkpoint['iter']
        except (RuntimeError, ValueError) as error:
            raise ValueError(f'checkpoint {path} is not of a network with the settings of this run: {error}') from error
        infos: dict[str, Any] = checkpoint.get('infos') or {}
        self._core.state.levels[:] = infos.get('level', 0.0)
        self.updates = self.current_learning_iteration + 1  # a checkpoint names the last one, from 0
        if self._is_first:
            self._last = _last(cut_progress(self._folder, self.updates))
        return infos

    def learn_until(self, iterations: int, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train until this number of updates is done or `stopped()`, called before each step of the envs, is true.

        In a group it is called in the first process only, and only before the first step after an update.
        A checkpoint is written at the end, if there was an update. Returns whether the number of updates is done.
        """
        if self.updates >= iterations:
            return True
        first = self.updates
        self.current_learning_iteration, self._stopped = self.updates, stopped
        self._begin_update(iterations)
        try:
            # random ages make episodes end at different times, and short ones of the first: not when a run continues
            self.learn(iterations - self.updates, init_at_random_ep_len=self.updates == 0)
        except _StoppedError:
            if self.updates > first and self._is_first:  # the last one that is whole
                self.current_learning_iteration = self.updates - 1
                self.save(str(self._folder / f'model_{self.current_learning_iteration}.pt'))
            self.logger.stop_logging_writer()
        return self.updates >= iterations

    @override
    def _configure_multi_gpu(self) -> None:
        """Configure this process by its group; the method of rsl_rl takes GPUs only, and makes the group itself."""
        if not distributed.is_initialized():
            return super()._configure_multi_gpu()
        rank, count = distributed.get_rank(), distributed.get_world_size()
        self.is_distributed = True
        self.gpu_world_size, self.gpu_local_rank, self.gpu_global_rank = count, rank, rank
        self.cfg['multi_gpu'] = {'global_rank': rank, 'local_rank': rank, 'world_size': count}

    @property
    def _is_first(self) -> bool:
        return self.gpu_global_rank == 0

    def _log(self, **values: Any) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # its tables; progress goes through `report`
            self._write_log(**values)
        self.updates = values['it'] + 1
        self._begin_update(values['total_it'])
        if not self._is_first:
            return
        steps = self.cfg['num_steps_per_env'] * self.env.num_envs * self.gpu_world_size
        seconds = values['collect_time'] + values['learn_time']
        before = self._last  # its means hold until an episode has ended
        self._last = Progress(
            iteration=self.updates,
            steps=steps + before.steps,
            seconds=round(seconds + before.seconds, 2),
            mean_return=statistics.fmean(self.logger.rewbuffer or [before.mean_return]),
            mean_length=statistics.fmean(self.logger.lenbuffer or [before.mean_length]),
            steps_per_second=steps / seconds,
            learning_rate=values['learning_rate'],
            action_std=values['action_std'].mean().item(),
            level=float(self._core.state.levels.mean()),
        )
        append_progress(self._folder, self._last)
        self._report(self._last)

    def _act_unless_stopped(self, *observations: Any) -> Any:
        if self._stopped_together() if self.is_distributed else self._stopped():
            raise _StoppedError
        return self._act(*observations)

    def _stopped_together(self) -> bool:
        """Return True if the first process stops; all have to stop between the same two updates."""
        if self.alg.storage.step > 0:
            return False
        answer = torch.tensor(self._stopped(), device=self.device)
        distributed.broadcast(answer, 0)
        return bool(answer)

    def _begin_update(self, iterations: int) -> None:
        self.alg.actor.requires_grad_(self.updates >= self._settings.critic_first)
        settings, done = self._settings, self.updates / iterations
        exploring = done < settings.explore
        self.alg.entropy_coef = settings.entropy if exploring else 0.0
        left = 1.0 if exploring else (1.0 - done) / max(1.0 - settings.explore, 1e-9)
        assert isinstance(self.alg, BoundedPPO)
        self.alg.share = max(left, _LAST_SHARE)


def _last(progress: Sequence[Progress]) -> Progress:
    return progress[-1] if progress else Progress(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class _StoppedError(Exception):
    """Raised to leave the loop of rsl_rl while it collects data for an update."""


_UNSEEN = {'mlp.0.weight': 0.0, 'obs_normalizer._mean': 0.0, 'obs_normalizer._std': 1.0, 'obs_normalizer._var': 1.0}
"""Value in place of an observation that the earlier policy does not have."""


def warm_start(actor: MLPModel, policy: str | os.PathLike[str], core: ArrayRunner) -> None:
    """Give a policy the weights and the normalization of observations of an ONNX file of `internutopia train`.

    It may see more than the policy of the file: the parts of the observation that follow those of the file mean nothing
    to it at first.

    Args:
        actor: the policy; how much it explores stays as it is.
        policy: the file, looked up like any other asset.
        core: the envs of the task.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file, or of another network: of other joints, observations, actions or layers.
    """
    file, observations = resolve(policy, ('.onnx',)), core.learning.one_group('start_from')
    try:
        model: Any = onnx.load(file)
    except Exception as error:  # of protobuf, without a common base
        raise ValueError(f'policy {file} is no ONNX file: {error}') from error
    text = next((prop.value for prop in model.metadata_props if prop.key == METADATA_KEY), None)
    metadata = None if text is None else parse_metadata(file, text)
    if isinstance(metadata, PolicyMetadata):
        _check_joints(file, metadata, core)
    found = {tensor.name: np.array(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    own = actor.state_dict()
    wanted = {name for name in own if name.startswith('mlp.')}
    [scale] = [values for name, values in found.items() if 'Div' in name] or [None]
    normalized = not isinstance(actor.obs_normalizer, torch.nn.Identity)
    if normalized != (scale is not None):
        theirs, ours = ('are not', 'are') if normalized else ('are', 'are not')
        raise ValueError(f'policy {file}: its observations {theirs} normalized, these {ours} (`TrainingCfg.normalize`)')
    normalization = {}
    if scale is not None:
        deviation = scale - actor.obs_normalizer.eps
        samples = 0 if metadata is None else int(metadata.training.get('env_steps', 0))
        normalization = {
            'obs_normalizer._mean': found['obs_normalizer._mean'],
            'obs_normalizer._std': deviation,
            'obs_normalizer._var': deviation**2,
            # as many as it has seen: what comes now changes it slowly
            'obs_normalizer.count': np.array(max(samples, 1), np.int64),
        }
    new = {name: found[name] for name in wanted if name in found} | normalization
    if _sees_more(observations, metadata) and 'mlp.0.weight' in new:
        more = max(own['mlp.0.weight'].shape[1] - new['mlp.0.weight'].shape[1], 0)
        for name in new.keys() & _UNSEEN.keys():
            new[name] = np.pad(new[name], ((0, 0), (0, more)), constant_values=_UNSEEN[name])
    for name in sorted(wanted | normalization.keys()):
        there = new[name].shape if name in new else 'nothing'
        if there != tuple(own[name].shape):
            raise ValueError(
                f'policy {file} is another network: {name} is {there} there, {tuple(own[name].shape)} here'
            )
    actor.load_state_dict({**own, **{name: torch.as_tensor(values) for name, values in new.items()}})


def _check_joints(file: Path, metadata: PolicyMetadata, core: ArrayRunner) -> None:
    """Raise ValueError if a policy drives other joints than the task, warn if by other actions."""
    subset = core.controller.get_joint_subset()
    own = [] if subset is None else list(subset.joint_names)
    if own != metadata.joint_names:
        theirs = ', '.join(metadata.joint_names)
        raise ValueError(
            f'policy {file} is for {metadata.robot}: it drives {theirs}; the task drives {", ".join(own) or "none"}'
        )
    scale = np.broadcast_to(metadata.scale, len(own))
    for name, their, our in (
        ('offset', metadata.offset, core.state.action_offset),
        ('scale', scale, core.state.action_scale),
    ):
        their, our = np.array(their), to_host(our)
        if not np.allclose(their, our, rtol=1e-4, atol=1e-4):
            log.warning(
                'policy %s, of %s: its actions have another %s (%s) than those of the task (%s), so it moves otherwise',
                *(file, metadata.robot, name, their.round(3).tolist(), our.round(3).tolist()),
            )


def _sees_more(
    observations: Sequence[ObservationTermCfg], metadata: PolicyMetadata | TaskPolicyMetadata | None
) -> bool:
    """Return True if these observations begin with those of a policy file, and have more."""
    if metadata is None or len(observations) <= (seen := len(metadata.observations)):
        return False
    own, theirs = (
        [(cfg.term, cfg.params, cfg.scale) for cfg in cfgs] for cfgs in (observations, metadata.observations)
    )
    return own[:seen] == theirs
