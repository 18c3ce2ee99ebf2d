"""Occlusion: the share of an object's pixels that other objects hide.

It is 1 minus the pixels that show the thing over those that it takes alone. So each thing in the image is rendered
once more, alone, but only the part of the image that it may take: `crop_around`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import BACKGROUND, NEAR, CameraPose

_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


@dataclass(frozen=True)
class Crop:
    """A part of an image, of whole pixels.

    `camera_pose` is its camera, `size` its width and height, `corner` its first column and row [pixels].
    """

    camera_pose: CameraPose
    size: tuple[int, int]
    corner: tuple[int, int] = (0, 0)


def pixel_boxes(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    geoms: Sequence[int] | NDArray[np.intp],
    camera_pose: CameraPose,
    size: tuple[int, int],
) -> NDArray[np.float64] | None:
    """Return the lowest and highest x (to the right) and y (up) of geoms in an image of `size` [pixels], `(2, k, 2)`.

    `data` has the poses of geoms. None if one of them is infinite or reaches behind the camera.
    """
    centre, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
    local = centre[:, None] + _CORNERS * half[:, None]
    axes = data.geom_xmat[geoms].reshape(-1, 3, 3)
    corners = data.geom_xpos[geoms][:, None] + local @ axes.transpose(0, 2, 1)
    places, ahead = camera_pose.project(corners)
    infinite = (model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_PLANE).any()
    if infinite or (not camera_pose.intrinsics.orthographic and ahead.min() < NEAR):
        return None
    return (np.stack([places.min(axis=1), places.max(axis=1)]) + 1.0) * 0.5 * size


def crop_around(boxes: NDArray[np.float64] | None, camera_pose: CameraPose, size: tuple[int, int]) -> Crop:
    """Return the part of an image of `size` [pixels] outside of which nothing in some `pixel_boxes` can be seen."""
    if boxes is None:
        return Crop(camera_pose, size)
    pixels = np.array(size, np.float64)
    low = np.clip(np.floor(boxes[0].min(axis=0) - 1.0), 0, pixels - 1)
    high = np.clip(np.ceil(boxes[1].max(axis=0) + 1.0), low + 1, pixels)
    edges: list[Any] = [tuple((each * 2.0 / pixels - 1.0).tolist()) for each in (low, high)]
    intrinsics = camera_pose.intrinsics.crop(*edges)
    width, height = (high - low).astype(int).tolist()
    corner = int(low[0]), int(size[1] - high[1])
    return Crop(replace(camera_pose, intrinsics=intrinsics), (width, height), corner)


def count_pixels(labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """Count the pixels of each thing in a label image, up to the last one in it, which may be none."""
    return np.bincount(labels.ravel() - BACKGROUND)[-BACKGROUND:]


def occlusion_picture(labels: NDArray[np.int32], alone: Mapping[int, int]) -> NDArray[np.float32]:
    """Return for each pixel of a label image the share of its thing's pixels that others hide.

    `alone`: how many pixels each thing in the image takes alone.
    """
    visible = count_pixels(labels)
    ratios = np.full(len(visible) - BACKGROUND, np.nan, np.float32)  # the last two for what is no thing
    for thing, pixels in alone.items():
        ratios[thing] = 1.0 - visible[thing] / max(pixels, visible[thing])
    return ratios[labels]
