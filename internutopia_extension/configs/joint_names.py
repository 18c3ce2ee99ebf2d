"""Joint names of the built-in robots, in every order that is used. No list is written anywhere else."""


def _names(text: str) -> list[str]:
    return text.split()


H1_19 = _names("""
    left_hip_yaw_joint right_hip_yaw_joint torso_joint left_hip_roll_joint right_hip_roll_joint
    left_shoulder_pitch_joint right_shoulder_pitch_joint left_hip_pitch_joint right_hip_pitch_joint
    left_shoulder_roll_joint right_shoulder_roll_joint left_knee_joint right_knee_joint left_shoulder_yaw_joint
    right_shoulder_yaw_joint left_ankle_joint right_ankle_joint left_elbow_joint right_elbow_joint
""")
"""H1 (with or without hands) in the order of the simulation."""

H1_GYM_19 = _names("""
    left_hip_yaw_joint left_hip_roll_joint left_hip_pitch_joint left_knee_joint left_ankle_joint right_hip_yaw_joint
    right_hip_roll_joint right_hip_pitch_joint right_knee_joint right_ankle_joint torso_joint
    left_shoulder_pitch_joint left_shoulder_roll_joint left_shoulder_yaw_joint left_elbow_joint
    right_shoulder_pitch_joint right_shoulder_roll_joint right_shoulder_yaw_joint right_elbow_joint
""")
"""H1 in the order of its walking policy."""

ALIENGO_12 = _names("""
    FL_hip_joint FR_hip_joint RL_hip_joint RR_hip_joint FL_thigh_joint FR_thigh_joint RL_thigh_joint RR_thigh_joint
    FL_calf_joint FR_calf_joint RL_calf_joint RR_calf_joint
""")
"""Aliengo in the order of the simulation."""

ALIENGO_GYM_12 = [f'{leg}_{part}_joint' for leg in ('FL', 'FR', 'RL', 'RR') for part in ('hip', 'thigh', 'calf')]
"""Aliengo in the order of its walking policy, leg by leg."""

G1_SIM = _names("""
    left_hip_pitch_joint right_hip_pitch_joint waist_yaw_joint left_hip_roll_joint right_hip_roll_joint
    left_hip_yaw_joint right_hip_yaw_joint left_knee_joint right_knee_joint left_shoulder_pitch_joint
    right_shoulder_pitch_joint left_ankle_pitch_joint right_ankle_pitch_joint left_shoulder_roll_joint
    right_shoulder_roll_joint left_ankle_roll_joint right_ankle_roll_joint left_shoulder_yaw_joint
    right_shoulder_yaw_joint left_elbow_joint right_elbow_joint left_wrist_roll_joint right_wrist_roll_joint
    left_wrist_pitch_joint right_wrist_pitch_joint left_wrist_yaw_joint right_wrist_yaw_joint
""")
"""G1 in the order of the simulation; the waist's roll and pitch joints are not driven."""

G1_GYM = _names("""
    left_hip_pitch_joint left_hip_roll_joint left_hip_yaw_joint left_knee_joint left_ankle_pitch_joint
    left_ankle_roll_joint right_hip_pitch_joint right_hip_roll_joint right_hip_yaw_joint right_knee_joint
    right_ankle_pitch_joint right_ankle_roll_joint waist_yaw_joint left_shoulder_pitch_joint
    left_shoulder_roll_joint left_shoulder_yaw_joint left_elbow_joint left_wrist_roll_joint left_wrist_pitch_joint
    left_wrist_yaw_joint right_shoulder_pitch_joint right_shoulder_roll_joint right_shoulder_yaw_joint
    right_elbow_joint right_wrist_roll_joint right_wrist_pitch_joint right_wrist_yaw_joint
""")
"""G1 in the order of its walking policy: 12 leg joints, then the 15 of the upper body."""

GR1_54 = _names("""
    left_hip_roll_joint left_hip_yaw_joint left_hip_pitch_joint left_knee_pitch_joint left_ankle_pitch_joint
    left_ankle_roll_joint right_hip_roll_joint right_hip_yaw_joint right_hip_pitch_joint right_knee_pitch_joint
    right_ankle_pitch_joint right_ankle_roll_joint waist_yaw_joint waist_pitch_joint waist_roll_joint
    head_roll_joint head_pitch_joint head_yaw_joint left_shoulder_pitch_joint left_shoulder_roll_joint
    left_shoulder_yaw_joint left_elbow_pitch_joint left_wrist_yaw_joint left_wrist_roll_joint left_wrist_pitch_joint
    L_index_proximal_joint L_index_intermediate_joint L_middle_proximal_joint L_middle_intermediate_joint
    L_pinky_proximal_joint L_pinky_intermediate_joint L_ring_proximal_joint L_ring_intermediate_joint
    L_thumb_proximal_yaw_joint L_thumb_proximal_pitch_joint L_thumb_distal_joint right_shoulder_pitch_joint
    right_shoulder_roll_joint right_shoulder_yaw_joint right_elbow_pitch_joint right_wrist_yaw_joint
    right_wrist_roll_joint right_wrist_pitch_joint R_index_proximal_joint R_index_intermediate_joint
    R_middle_proximal_joint R_middle_intermediate_joint R_pinky_proximal_joint R_pinky_intermediate_joint
    R_ring_proximal_joint R_ring_intermediate_joint R_thumb_proximal_yaw_joint R_thumb_proximal_pitch_joint
    R_thumb_distal_joint
""")
"""GR1 in the order of its walking policy: 12 leg joints, then the 42 of the upper body."""

GR1_TELEOP_54 = _names("""
    left_hip_roll_joint right_hip_roll_joint waist_yaw_joint left_hip_yaw_joint right_hip_yaw_joint
    waist_pitch_joint left_hip_pitch_joint right_hip_pitch_joint waist_roll_joint left_knee_pitch_joint
    right_knee_pitch_joint left_ankle_pitch_joint right_ankle_pitch_joint head_roll_joint left_shoulder_pitch_joint
    right_shoulder_pitch_joint left_ankle_roll_joint right_ankle_roll_joint head_pitch_joint
    left_shoulder_roll_joint right_shoulder_roll_joint head_yaw_joint left_shoulder_yaw_joint
    right_shoulder_yaw_joint left_elbow_pitch_joint right_elbow_pitch_joint left_wrist_yaw_joint
    right_wrist_yaw_joint left_wrist_roll_joint right_wrist_roll_joint left_wrist_pitch_joint
    right_wrist_pitch_joint L_index_proximal_joint L_middle_proximal_joint L_pinky_proximal_joint
    L_ring_proximal_joint L_thumb_proximal_yaw_joint R_index_proximal_joint R_middle_proximal_joint
    R_pinky_proximal_joint R_ring_proximal_joint R_thumb_proximal_yaw_joint L_index_intermediate_joint
    L_middle_intermediate_joint L_pinky_intermediate_joint L_ring_intermediate_joint L_thumb_proximal_pitch_joint
    R_index_intermediate_joint R_middle_intermediate_joint R_pinky_intermediate_joint R_ring_intermediate_joint
    R_thumb_proximal_pitch_joint L_thumb_distal_joint R_thumb_distal_joint
""")
"""GR1 in the order of the teleoperation's joint targets."""

GR1_DOF_54 = _names("""
    head_roll_joint left_shoulder_pitch_joint right_shoulder_pitch_joint waist_roll_joint head_pitch_joint
    left_shoulder_roll_joint right_shoulder_roll_joint waist_pitch_joint head_yaw_joint left_shoulder_yaw_joint
    right_shoulder_yaw_joint waist_yaw_joint left_elbow_pitch_joint right_elbow_pitch_joint left_hip_roll_joint
    right_hip_roll_joint left_wrist_yaw_joint right_wrist_yaw_joint left_hip_yaw_joint right_hip_yaw_joint
    left_wrist_roll_joint right_wrist_roll_joint left_hip_pitch_joint right_hip_pitch_joint left_wrist_pitch_joint
    right_wrist_pitch_joint left_knee_pitch_joint right_knee_pitch_joint left_ankle_pitch_joint
    right_ankle_pitch_joint left_ankle_roll_joint right_ankle_roll_joint L_index_proximal_joint
    L_middle_proximal_joint L_pinky_proximal_joint L_ring_proximal_joint L_thumb_proximal_yaw_joint
    R_index_proximal_joint R_middle_proximal_joint R_pinky_proximal_joint R_ring_proximal_joint
    R_thumb_proximal_yaw_joint L_index_intermediate_joint L_middle_intermediate_joint L_pinky_intermediate_joint
    L_ring_intermediate_joint L_thumb_proximal_pitch_joint R_index_intermediate_joint R_middle_intermediate_joint
    R_pinky_intermediate_joint R_ring_intermediate_joint R_thumb_proximal_pitch_joint L_thumb_distal_joint
    R_thumb_distal_joint
""")
"""GR1 in the order of the simulation."""

FRANKA_ARM_7 = [f'panda_joint{i}' for i in range(1, 8)]
"""The joints of Franka's arm, from the base outwards."""

FRANKA_FINGERS = ['panda_finger_joint1', 'panda_finger_joint2']
"""The joints of Franka's fingers, left and right."""
