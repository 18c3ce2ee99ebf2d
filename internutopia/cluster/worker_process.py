"""Process of a worker: what it has to have of the main process before there are envs in it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from internutopia.cluster.resources import worker_environment
from internutopia.compat.v2.runs import install_stand_ins
from internutopia.config import Config
from internutopia.core.registries import REGISTRIES


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
        install_stand_ins(self.config)  # before the modules of those classes are imported
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
