"""Observation terms that read sensors and cameras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from internutopia.rendering.camera import PictureKind
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import term
from internutopia.util import did_you_mean


@term('observation')
def sensor(state: RobotState, name: str, key: str) -> Array:
    """Current value of the sensor `name` under `key` `(n, k)`.

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


_KINDS: dict[str, PictureKind] = {'rgb': 'rgba', 'depth': 'depth'}
_SEGMENTATIONS = ('semantic_segmentation', 'instance_segmentation')


@term('observation')
def camera(
    state: RobotState,
    name: str,
    data: Literal['rgb', 'depth', 'semantic_segmentation', 'instance_segmentation'] = 'rgb',
    max_depth: float = 10.0,
    categories: Sequence[str] | None = None,
) -> Array:
    """Current image of the camera sensor `name`, at its resolution `(n, height * width * channels)`.

    Rows are from the top, channels last. `'rgb'` has three channels from 0 to 1; `'depth'` one, the distance along the
    viewing direction [m], at most `max_depth` [m]. Segmentations have one channel: the ids of the camera's observation
    of that name, which differ between scenes; or, for a semantic segmentation with `categories`, 1 for the first
    category, 2 for the second, and so on, 0 for the rest. ValueError if
    there is no such camera.
    """
    values = picture(state, name, data, max_depth, categories)
    if data == 'rgb':
        values = state.xp.astype(values, state.xp.float32) / 255.0
    return values.reshape(state.env_num, -1)


def picture(
    state: RobotState,
    name: str,
    data: Literal['rgb', 'depth', 'semantic_segmentation', 'instance_segmentation'],
    max_depth: float,
    categories: Sequence[str] | None,
) -> Any:
    """Render the camera sensor `name` in all envs, see `camera`: `(n, height, width, channels)`, colours as uint8."""
    if categories is not None and data != 'semantic_segmentation':
        raise ValueError(f"observation term 'camera': {data!r} has no categories, 'semantic_segmentation' has")
    sensors: dict[str, Any] = {
        key: sensor for key, sensor in state.robot.sensors.items() if hasattr(sensor, 'pictures')
    }
    if name not in sensors:
        raise ValueError(
            f"observation term 'camera': robot {state.robot.name!r} has no batched camera sensor {name!r}; "
            f'{did_you_mean(name, sensors)}'
        )
    if data in _SEGMENTATIONS:
        values = sensors[name].segmentation(data, None if categories is None else tuple(categories))
        return values[..., None]
    kind = _KINDS[data]
    rendered = sensors[name].pictures(kind)[kind]
    return rendered[..., :3] if kind == 'rgba' else state.xp.clip(rendered, 0.0, max_depth)[..., None]
