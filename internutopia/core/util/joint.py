"""Joints between bodies of a running scene, which cannot be made here."""

from __future__ import annotations

from typing import NoReturn

from internutopia.core.config.fields import Quaternion, Vector


def create_joint(
    prim_path: str,
    joint_type: str,
    body0: str | None = None,
    body1: str | None = None,
    enabled: bool = True,
    joint_frame_in_parent_frame_pos: Vector | None = None,
    joint_frame_in_parent_frame_quat: Quaternion | None = None,
    joint_frame_in_child_frame_pos: Vector | None = None,
    joint_frame_in_child_frame_quat: Quaternion | None = None,
    break_force: float | None = None,
    break_torque: float | None = None,
) -> NoReturn:
    """NotImplementedError: a scene is compiled when its episode starts, with the joints that its files and configs say.

    Its arguments are those of 2.x.
    """
    raise NotImplementedError(
        f'create_joint({prim_path!r}): joints cannot be added to a running scene; to fix a robot to the ground, give '
        'its class `fixed_base = True`, and put other joints into the file of the scene or robot'
    )
