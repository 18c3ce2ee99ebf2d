"""2.x behaviour of scenes: raw lengths, no units by default, and the joints that robots have and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from internutopia.model.assets import PACKAGED_ASSETS, resolve
from internutopia.model.spec import RobotSpec, SceneSpec

JOINTS: dict[str, Sequence[str]] = {}
"""Joints of assets of 2.x in its order, by the packaged model that stands for each (`robots/g1/g1.xml`).

Only of those that differ from the model in more than being ordered breadth first. Robots' modules write them here.
"""


def takes_raw_lengths(*scale: float) -> bool:
    """Return whether a USD file of this scale counts in the lengths that are written, whatever its `metersPerUnit`.

    2.x put a file below a prim with its scale, on a stage in metres that knew nothing of the file's unit: where a scale
    other than 1 is given, files count in raw lengths.
    """
    return set(scale) != {1.0}


def as_in_2x(spec: SceneSpec) -> SceneSpec:
    """Return a scene with the joints that its robots have in 2.x, and lengths and up axes as 2.x took them."""
    return replace(
        spec,
        raw_lengths=takes_raw_lengths(*spec.scale),
        ignore_usd_defaults=True,
        robots=tuple(_robot_as_in_2x(robot) for robot in spec.robots),
        objects=tuple(
            replace(obj, raw_lengths=takes_raw_lengths(*obj.scale), ignore_usd_defaults=True) for obj in spec.objects
        ),
    )


def _robot_as_in_2x(robot: RobotSpec) -> RobotSpec:
    asset = resolve(robot.asset)
    names = JOINTS.get(asset.relative_to(PACKAGED_ASSETS).as_posix()) if asset.is_relative_to(PACKAGED_ASSETS) else None
    return replace(
        robot,
        raw_lengths=takes_raw_lengths(robot.scale),
        ignore_usd_defaults=True,
        joint_order='breadth_first' if names is None else tuple(names),
    )
