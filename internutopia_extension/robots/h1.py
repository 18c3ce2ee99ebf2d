"""Unitree H1, the humanoid with 19 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.model import Drives

# Gains [N·m/rad, N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia 2.2.1 (MIT), class
# H1Robot and the H1 locomotion controller.
_GAINS = {
    'hip_yaw': (200.0, 5.0),
    'hip_roll': (200.0, 5.0),
    'hip_pitch': (200.0, 5.0),
    'knee': (300.0, 6.0),
    'ankle': (40.0, 2.0),
    'shoulder_pitch': (100.0, 2.0),
    'shoulder_roll': (100.0, 2.0),
    'shoulder_yaw': (100.0, 2.0),
    'elbow': (100.0, 2.0),
}
_TORSO_GAINS = (300.0, 6.0)
_HOME = {'hip_pitch': -0.4, 'knee': 0.8, 'ankle': -0.4}


def _both_sides(values: dict[str, float]) -> dict[str, float]:
    return {f'{side}_{joint}_joint': value for side in ('left', 'right') for joint, value in values.items()}


@BaseRobot.register('H1Robot')
class H1Robot(BaseRobot):
    """Unitree H1 with joint drives on all 19 joints; observes and is posed by its pelvis."""

    batched = True
    drives = Drives(
        stiffness={**_both_sides({j: kp for j, (kp, _) in _GAINS.items()}), 'torso_joint': _TORSO_GAINS[0]},
        damping={**_both_sides({j: kd for j, (_, kd) in _GAINS.items()}), 'torso_joint': _TORSO_GAINS[1]},
    )
    home = MappingProxyType(_both_sides(_HOME))
    base_link = 'pelvis'
    fixed_base = False

    def get_ankle_height(self) -> float:
        """Height of the lower ankle link in the env frame [m]."""
        ankles = (self.articulation.body(f'{side}_ankle_link') for side in ('left', 'right'))
        return min(float(ankle.get_pose()[0][..., 2]) for ankle in ankles)

    def set_gains(self) -> None:
        """Set the gains of this class again, after they were changed at run time."""
        gains = [self.drives.gains(name) for name in self.articulation.dof_names]
        self.articulation.set_gains([kp for kp, _ in gains], [kd for _, kd in gains])
