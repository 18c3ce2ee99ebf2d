"""Configs of the extension."""

from pathlib import Path

from internutopia.core.config import ControllerCfg, MetricCfg, ObjectCfg, RobotCfg, SensorCfg, TaskCfg
from internutopia_extension.configs.controllers import JointControllerCfg

joints_cfg = JointControllerCfg(name='joints', joint_names=['x', 'y', 'yaw'])


class RoverSpeedControllerCfg(ControllerCfg):
    """Drives at a velocity."""

    type: str = 'RoverSpeedController'
    sub_controllers: list[ControllerCfg] | None = [joints_cfg]
    gain: float = 1.0


class DeckSensorCfg(SensorCfg):
    """Tells where the deck is and how it moves."""

    type: str = 'DeckSensor'


class RoverCfg(RobotCfg):
    """A rover on rails."""

    type: str = 'Rover'
    name: str = 'rover'
    prim_path: str = '/World/rover'
    usd_path: str | None = str(Path(__file__).with_name('rover.xml'))


class BeaconCfg(ObjectCfg):
    """Something to drive to."""

    type: str = 'Beacon'
    height: float = 1.0


class WayMetricCfg(MetricCfg):
    """How far the rover drove."""

    type: str = 'WayMetric'
    name: str | None = 'way'
    robot_name: str


class RoverTaskCfg(TaskCfg):
    """Drives to the beacon."""

    type: str | None = 'RoverTask'
    max_steps: int = 100
    reach: float = 0.05
