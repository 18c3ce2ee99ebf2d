"""Joint names of the built-in robots, in every order that is used. No list is written anywhere else."""


def _joints(stems: str) -> list[str]:
    return [f'{stem}_joint' for stem in stems.split()]


H1_19 = _joints("""
    left_hip_yaw right_hip_yaw torso left_hip_roll right_hip_roll left_shoulder_pitch right_shoulder_pitch
    left_hip_pitch right_hip_pitch left_shoulder_roll right_shoulder_roll left_knee right_knee left_shoulder_yaw
    right_shoulder_yaw left_ankle right_ankle left_elbow right_elbow
""")
"""H1 (with or without hands) in the order of the simulation."""

H1_GYM_19 = _joints("""
    left_hip_yaw left_hip_roll left_hip_pitch left_knee left_ankle right_hip_yaw right_hip_roll right_hip_pitch
    right_knee right_ankle torso left_shoulder_pitch left_shoulder_roll left_shoulder_yaw left_elbow
    right_shoulder_pitch right_shoulder_roll right_shoulder_yaw right_elbow
""")
"""H1 in the order of its walking policy."""

ALIENGO_12 = _joints("""
    FL_hip FR_hip RL_hip RR_hip FL_thigh FR_thigh RL_thigh RR_thigh FL_calf FR_calf RL_calf RR_calf
""")
"""Aliengo and Go2 in the order of the simulation."""

ALIENGO_GYM_12 = [f'{leg}_{part}_joint' for leg in ('FL', 'FR', 'RL', 'RR') for part in ('hip', 'thigh', 'calf')]
"""Aliengo and Go2 in the order of their walking policies, leg by leg."""

G1_SIM = _joints("""
    left_hip_pitch right_hip_pitch waist_yaw left_hip_roll right_hip_roll left_hip_yaw right_hip_yaw left_knee
    right_knee left_shoulder_pitch right_shoulder_pitch left_ankle_pitch right_ankle_pitch left_shoulder_roll
    right_shoulder_roll left_ankle_roll right_ankle_roll left_shoulder_yaw right_shoulder_yaw left_elbow right_elbow
    left_wrist_roll right_wrist_roll left_wrist_pitch right_wrist_pitch left_wrist_yaw right_wrist_yaw
""")
"""G1 in the order of the simulation; the waist's roll and pitch joints are not driven."""

G1_GYM = _joints("""
    left_hip_pitch left_hip_roll left_hip_yaw left_knee left_ankle_pitch left_ankle_roll right_hip_pitch
    right_hip_roll right_hip_yaw right_knee right_ankle_pitch right_ankle_roll waist_yaw left_shoulder_pitch
    left_shoulder_roll left_shoulder_yaw left_elbow left_wrist_roll left_wrist_pitch left_wrist_yaw
    right_shoulder_pitch right_shoulder_roll right_shoulder_yaw right_elbow right_wrist_roll right_wrist_pitch
    right_wrist_yaw
""")
"""G1 in the order of its walking policy: 12 leg joints, then the 15 of the upper body."""

GR1_54 = _joints("""
    left_hip_roll left_hip_yaw left_hip_pitch left_knee_pitch left_ankle_pitch left_ankle_roll right_hip_roll
    right_hip_yaw right_hip_pitch right_knee_pitch right_ankle_pitch right_ankle_roll waist_yaw waist_pitch
    waist_roll head_roll head_pitch head_yaw left_shoulder_pitch left_shoulder_roll left_shoulder_yaw
    left_elbow_pitch left_wrist_yaw left_wrist_roll left_wrist_pitch L_index_proximal L_index_intermediate
    L_middle_proximal L_middle_intermediate L_pinky_proximal L_pinky_intermediate L_ring_proximal
    L_ring_intermediate L_thumb_proximal_yaw L_thumb_proximal_pitch L_thumb_distal right_shoulder_pitch
    right_shoulder_roll right_shoulder_yaw right_elbow_pitch right_wrist_yaw right_wrist_roll right_wrist_pitch
    R_index_proximal R_index_intermediate R_middle_proximal R_middle_intermediate R_pinky_proximal
    R_pinky_intermediate R_ring_proximal R_ring_intermediate R_thumb_proximal_yaw R_thumb_proximal_pitch
    R_thumb_distal
""")
"""GR1 in the order of its walking policy: 12 leg joints, then the 42 of the upper body."""

_GR1_HANDS = _joints("""
    L_index_proximal L_middle_proximal L_pinky_proximal L_ring_proximal L_thumb_proximal_yaw R_index_proximal
    R_middle_proximal R_pinky_proximal R_ring_proximal R_thumb_proximal_yaw L_index_intermediate
    L_middle_intermediate L_pinky_intermediate L_ring_intermediate L_thumb_proximal_pitch R_index_intermediate
    R_middle_intermediate R_pinky_intermediate R_ring_intermediate R_thumb_proximal_pitch L_thumb_distal
    R_thumb_distal
""")

GR1_TELEOP_54 = (
    _joints("""
    left_hip_roll right_hip_roll waist_yaw left_hip_yaw right_hip_yaw waist_pitch left_hip_pitch right_hip_pitch
    waist_roll left_knee_pitch right_knee_pitch left_ankle_pitch right_ankle_pitch head_roll left_shoulder_pitch
    right_shoulder_pitch left_ankle_roll right_ankle_roll head_pitch left_shoulder_roll right_shoulder_roll head_yaw
    left_shoulder_yaw right_shoulder_yaw left_elbow_pitch right_elbow_pitch left_wrist_yaw right_wrist_yaw
    left_wrist_roll right_wrist_roll left_wrist_pitch right_wrist_pitch
""")
    + _GR1_HANDS
)
"""GR1 in the order of the teleoperation's joint targets."""

GR1_DOF_54 = (
    _joints("""
    head_roll left_shoulder_pitch right_shoulder_pitch waist_roll head_pitch left_shoulder_roll right_shoulder_roll
    waist_pitch head_yaw left_shoulder_yaw right_shoulder_yaw waist_yaw left_elbow_pitch right_elbow_pitch
    left_hip_roll right_hip_roll left_wrist_yaw right_wrist_yaw left_hip_yaw right_hip_yaw left_wrist_roll
    right_wrist_roll left_hip_pitch right_hip_pitch left_wrist_pitch right_wrist_pitch left_knee_pitch
    right_knee_pitch left_ankle_pitch right_ankle_pitch left_ankle_roll right_ankle_roll
""")
    + _GR1_HANDS
)
"""GR1 in the order of the simulation."""

FRANKA_ARM_7 = [f'panda_joint{i}' for i in range(1, 8)]
"""The joints of Franka's arm, from the base outwards."""

FRANKA_FINGERS = ['panda_finger_joint1', 'panda_finger_joint2']
"""The joints of Franka's fingers, left and right."""

RIDGEBACK_BASE_3 = ['dummy_base_prismatic_x_joint', 'dummy_base_prismatic_y_joint', 'dummy_base_revolute_z_joint']
"""The joints on which the base of Ridgeback with Franka moves, as Isaac Sim's asset calls them: along x, y, about z."""
