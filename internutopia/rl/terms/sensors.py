"""Observation terms that read sensors."""

from __future__ import annotations

from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import term
from internutopia.util import did_you_mean


@term('observation')
def sensor(state: RobotState, name: str, key: str) -> Array:
    """Current value of the sensor `name` under `key`, `(n, k)`: one row per env.

    ValueError if the robot has no such sensor that serves all envs, or the sensor has no such value.
    """
    sensors = state.robot.sensors
    if name not in sensors:
        raise ValueError(
            f"observation term 'sensor': robot {state.robot.name!r} has no batched sensor {name!r}; "
            f'{did_you_mean(name, sensors)}'
        )
    data = sensors[name].get_data()
    if key not in data:
        raise ValueError(f"observation term 'sensor': sensor {name!r} has no {key!r}; {did_you_mean(key, data)}")
    return state.arrays.asarray(data[key], 'float32').reshape(state.env_num, -1)
