"""Resources of a worker: what it reserves of the cluster, and the environment that it has of this process."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from internutopia.compat.v2.runs import ignores_gpus
from internutopia.config import DistributedConfig
from internutopia.config.distribution import RayDistributionCfg

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
    asked = 'gpu_num_per_proc' in distribution.model_fields_set or config.simulator.device != 'cpu'
    gpus = float(distribution.gpu_num_per_proc) if asked and not ignores_gpus(config) else 0.0
    if gpus * count > resources.get('GPU', 0.0):
        raise ValueError(
            f'distribution_config: {count} workers with gpu_num_per_proc={distribution.gpu_num_per_proc:g} need '
            f'{gpus * count:g} GPUs, the cluster has {resources.get("GPU", 0.0):g}; gpu_num_per_proc=0 asks for none'
        )
    return WorkerResources(cpus, gpus, threads)


def worker_environment() -> dict[str, str]:
    """Return the environment variables of this process that workers shall have, too."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)}
