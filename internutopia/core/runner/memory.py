"""Check of the memory of a run before it is allocated."""

from __future__ import annotations

from internutopia.config import Config, TaskCfg
from internutopia.util.memory import machine_memory

_GIB = 2**30


def check_memory(config: Config) -> None:
    """Raise a ValueError if the sensor data of all envs of this process do not fit into the machine's memory."""
    memory = machine_memory()
    tasks = {id(task): (index, task) for index, task in reversed(list(enumerate(config.task_configs)))}
    for index, task in tasks.values():
        needed = config.env_num * sum(_sensors(task).values())
        if memory is not None and needed > memory:
            name, largest = max(_sensors(task).items(), key=lambda item: item[1])
            raise ValueError(
                f'task_configs[{index}]: the data of its sensors in env_num={config.env_num} envs take '
                f'{needed / _GIB:.1f} GiB, most of it {name}, {largest / _GIB:.2g} GiB for each env; this machine has '
                f'{memory / _GIB:.1f} GiB of memory: use fewer envs, pixels or rays'
            )


def _sensors(task: TaskCfg) -> dict[str, int]:
    """Return the memory of each sensor of a task in one env [bytes]."""
    return {
        f'sensor {sensor.name!r} of robot {robot.name!r}': sensor.bytes_per_env()
        for robot in task.robots
        for sensor in robot.sensors or []
        if sensor.is_on
    }
