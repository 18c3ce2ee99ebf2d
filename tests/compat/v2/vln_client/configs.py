"""Configs of the client; what they lack goes along as extra fields."""

# pyright: reportIncompatibleVariableOverride=false, reportGeneralTypeIssues=false
# written for the base classes of 2.x

from typing import Any

from internutopia.core.config import MetricCfg, SensorCfg, TaskCfg
from internutopia.core.config.robot import ControllerCfg


class SpeedCfg(ControllerCfg):
    name: str = 'move_by_speed'
    type: str = 'ClientSpeed'
    joint_names: list[str]
    policy_weights_path: str


class StandStillCfg(ControllerCfg):
    name: str = 'stand_still'
    type: str = 'ClientStandStill'


class DiscreteCfg(ControllerCfg):
    name: str = 'move_by_discrete'
    type: str = 'ClientDiscrete'
    steps_per_action: int = 50
    forward_distance: float = 0.25
    rotation_angle: float = 15.0
    physics_frequency: int = 200


class FlashCfg(ControllerCfg):
    name: str = 'move_by_flash'
    type: str = 'ClientFlash'
    forward_distance: float = 0.25
    rotation_angle: float = 15.0


class PanoramaCfg(SensorCfg):
    name: str = 'pano_camera_0'
    type: str = 'ClientCamera'
    prim_path: str | None = 'torso_link/h1_pano_camera_0'
    enable: bool | None = True
    resolution: tuple[int, int] | None


class PathMetricCfg(MetricCfg):
    name: str | None = 'path'
    type: str = 'ClientPathMetric'
    shortest_to_goal_distance: float
    success_distance: float


class PathTaskCfg(TaskCfg):
    type: str | None = 'ClientPathTask'
    max_step: int
    check_fall_and_stuck: bool
    robot_ankle_height: float
    fall_height_threshold: float
    metrics: list[MetricCfg]
    warm_up_step: int
    data: dict[str, Any]
    robot_flash: bool | None = False
    one_step_stand_still: bool | None = False
