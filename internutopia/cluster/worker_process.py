"""Process of a worker: what it reserves of the cluster, and has of the main process before there are envs in it."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from internutopia.config import Config, DistributedConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.core.registries import REGISTRIES
from internutopia.util.conventions import conventions_of, set_up_process


@dataclass(frozen=True)
class WorkerSpec:
    """Specification of a worker: `registries` are the registered classes by kind and name, pickled by Ray."""

    config: Config
    registries: bytes
    environment: Mapping[str, str]

    @classmethod
    def of(cls, config: Config, **fields: Any) -> Self:
        """Make the specification of a worker of this config, with the classes and the environment of this process."""
        registries = pickled({kind: dict(classes) for kind, classes in REGISTRIES.items()})
        return cls(config, registries, worker_environment(), **fields)

    def set_up_process(self) -> None:
        """Set up the environment and the registered classes of the main process in this one."""
        os.environ.update(self.environment)
        set_up_process(self.config)  # before the modules of those classes are imported
        for kind, classes in unpickled(self.registries).items():
            REGISTRIES[kind].update(classes)


def pickled(value: Any) -> bytes:
    """Pickle a value for a worker, classes of the main script included."""
    from ray import cloudpickle

    return cloudpickle.dumps(value)  # pyright: ignore[reportPrivateImportUsage]


def unpickled(data: bytes) -> Any:
    """Unpickle a value. ImportError that says what to do if its module is not there."""
    try:
        return pickle.loads(data)
    except ImportError as error:
        raise ImportError(
            f'a worker cannot import {error.name!r}, where classes of this run are registered: install it on every '
            'machine of the cluster, or send it along with RayDistributionCfg(working_dir=...)'
        ) from error


def this_place() -> str:
    """Return the id of this process and the address of its machine."""
    import ray

    return f'process {os.getpid()} on {ray.util.get_node_ip_address()}'


def this_node() -> str | None:
    """Return the machine of this process, by its id in the cluster; None outside of it."""
    import ray
    from ray.util.client import ray as client

    return None if client.is_connected() else ray.get_runtime_context().get_node_id()


_FORWARDED = ('INTERNUTOPIA_', 'MUJOCO_', 'PYOPENGL_')


@dataclass(frozen=True)
class WorkerResources:
    """Resources that one worker reserves, and the number of threads of its world."""

    cpus: float
    gpus: float
    threads: int


def worker_resources(config: DistributedConfig, distribution: RayDistributionCfg) -> WorkerResources:
    """Return the resources that each worker reserves. ValueError if the cluster has not enough GPUs.

    CPUs that are free are divided, so that workers always find room, if need be in a fraction of a CPU. GPUs are
    reserved as the config says, but not by its default if physics runs on the CPU.
    """
    import ray

    resources, count = ray.cluster_resources(), distribution.proc_num
    threads = config.simulator.threads or max(1, int(resources.get('CPU', 1.0) / count))
    cpus = min(float(threads), ray.available_resources().get('CPU', 0.0) / count)
    cpus = float(int(cpus)) if cpus >= 1.0 else math.floor(cpus * 1e4) / 1e4  # Ray's own grain
    requested = 'gpu_num_per_proc' in distribution.model_fields_set or config.simulator.device != 'cpu'
    reserved = requested and conventions_of(config.compat)(config).reserves_gpus(config.simulator.device)
    gpus = float(distribution.gpu_num_per_proc) if reserved else 0.0
    if gpus * count > resources.get('GPU', 0.0):
        raise ValueError(
            f'distribution_config: {count} workers with gpu_num_per_proc={distribution.gpu_num_per_proc:g} need '
            f'{gpus * count:g} GPUs, the cluster has {resources.get("GPU", 0.0):g}; gpu_num_per_proc=0 requests none'
        )
    return WorkerResources(cpus, gpus, threads)


def worker_environment() -> dict[str, str]:
    """Return the environment variables of this process that workers shall have, too."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)}
