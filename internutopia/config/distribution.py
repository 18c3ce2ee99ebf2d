"""Configs of running one `Config` in several processes."""

from typing import Annotated

from pydantic import Field, FiniteFloat, NonNegativeInt

from internutopia.config.fields import Count, NonNegativeFloat, PathStr
from internutopia.config.typed import TypedCfg
from internutopia.util.bounds import MAX_COUNT, MAX_GPUS, MAX_PROCESSES


class DistributionCfg(TypedCfg):
    """Distribution of envs over processes. All distribution configs keep unknown fields."""

    open_subclasses = True

    type: str
    """Kind of distribution: `'ray'`."""
    proc_num: Count = Field(default=1, le=MAX_PROCESSES)
    """Number of processes; each of them runs `Config.env_num` envs."""
    gpu_num_per_proc: NonNegativeFloat = Field(default=1, le=MAX_GPUS)
    """GPUs that each process reserves; a fraction shares one, 0 reserves none."""


class RayDistributionCfg(DistributionCfg):
    """Processes on a Ray cluster."""

    type: str = 'ray'
    head_address: str | None = None
    """Ray cluster to join: address of its head (`host:port`), or `'auto'` for one that runs on this machine. None means
    the one that the environment variable `RAY_ADDRESS` names, or else a new one on this machine for this run alone."""
    episode_retries: NonNegativeInt = Field(default=3, le=MAX_COUNT)
    """Number of times that an episode is run again after its worker died; then it is recorded with the error."""
    step_timeout: Annotated[FiniteFloat, Field(ge=1)] | None = None
    """Time limit of a call (`step`, `reset`, `render`, ...) to a worker [s], 1 or more; a worker that takes longer is
    killed and replaced like one that died. It must be longer than the slowest call, which may be a `reset` that
    compiles a scene. None waits for as long as it takes, with warnings."""
    working_dir: PathStr | None = None
    """Folder that the workers get a copy of and run in; None means the current one, without a copy."""
