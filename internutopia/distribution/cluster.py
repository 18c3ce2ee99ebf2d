"""The Ray cluster that workers run on: connecting to it, and what each of them reserves."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from internutopia.core.compat_2x import ignores_gpus
from internutopia.core.config import DistributedConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.util import log

_ANSWER = 10.0  # s that a cluster has to answer
_FORWARDED = ('INTERNUTOPIA_', 'MUJOCO_', 'PYOPENGL_')


@dataclass(frozen=True)
class Share:
    """What one worker reserves, and the threads that its world gets."""

    cpus: float
    gpus: float
    threads: int


def connect(distribution: RayDistributionCfg) -> None:
    """Connect this process to the cluster, unless it is; without an address, start one on this machine if need be.

    ConnectionError if there is none at `head_address`, FileNotFoundError if there is no such `working_dir`.
    """
    import ray

    folder = distribution.working_dir
    if folder is not None and not os.path.isdir(folder):
        raise FileNotFoundError(2, 'distribution_config.working_dir: there is no such folder', str(folder))
    os.environ.setdefault('RAY_IGNORE_UNHANDLED_ERRORS', '1')  # calls that another one's failure has called off
    if ray.is_initialized():
        if folder is not None:
            log.warning('distribution_config.working_dir has no effect: this process is connected to Ray already')
        return
    address = distribution.head_address
    if address is not None and ':' not in address:
        address += ':6379'  # where `ray start --head` listens
    options: dict[str, Any] = {'logging_level': logging.ERROR}
    if folder is not None:
        options['runtime_env'] = {'working_dir': str(folder)}
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
    os.environ.setdefault('RAY_worker_niceness', '0')  # what workers do is what the machine is for
    try:
        if address is not None:
            _knock(address)
        with _own_signals():
            try:
                ray.init(address=address or os.environ.get('RAY_ADDRESS') or 'auto', **options)
            except ConnectionError:
                if address is not None or 'RAY_ADDRESS' in os.environ:
                    raise
                ray.init(address='local', include_dashboard=False, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f'distribution_config.head_address={distribution.head_address!r}: no Ray cluster answers there ({error}); '
            "start one with 'ray start --head', or leave the address out to use this machine"
        ) from error


def _knock(address: str) -> None:
    """OSError or ValueError if nothing answers at `host:port`; Ray itself would try for minutes."""
    if '://' not in address:
        host, _, port = address.rpartition(':')
        socket.create_connection((host, int(port)), timeout=_ANSWER).close()


def share_of(config: DistributedConfig, distribution: RayDistributionCfg) -> Share:
    """What each worker reserves. ValueError if the cluster has not enough GPUs.

    CPUs that are free are divided, so that workers always find room, if need be in a fraction of a CPU. GPUs are
    reserved as the config says, but not by its default if physics runs on the CPU.
    """
    import ray

    resources, count = ray.cluster_resources(), distribution.proc_num
    threads = config.simulator.threads or max(1, int(resources.get('CPU', 1.0) / count))
    cpus = min(float(threads), ray.available_resources().get('CPU', 0.0) / count)
    cpus = float(int(cpus)) if cpus >= 1.0 else math.floor(cpus * 1e4) / 1e4  # Ray's own grain
    asked = 'gpu_num_per_proc' in distribution.model_fields_set or config.simulator.device != 'cpu'
    gpus = float(distribution.gpu_num_per_proc) if asked and not ignores_gpus(config) else 0.0
    if gpus * count > resources.get('GPU', 0.0):
        raise ValueError(
            f'distribution_config: {count} workers with gpu_num_per_proc={distribution.gpu_num_per_proc:g} need '
            f'{gpus * count:g} GPUs, the cluster has {resources.get("GPU", 0.0):g}; gpu_num_per_proc=0 asks for none'
        )
    return Share(cpus, gpus, threads)


def environment() -> dict[str, str]:
    """The environment variables of this process that workers shall have, too."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)}


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of signals as they are: Ray's own end the process without a last word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
