"""Fields of `MjModel` by what they are to PhysX: changeable at run time, without meaning to it, or fixed."""

from __future__ import annotations

from mujoco.batch import MODEL_FIELDS

_VISUAL_PREFIXES = ('cam_', 'light_', 'mat_', 'site_', 'geom_rgba')
_DERIVED = frozenset(
    {'body_subtreemass', 'body_invweight0', 'dof_M0', 'dof_invweight0', 'tendon_invweight0', 'actuator_acc0'}
)
CHANGEABLE = MODEL_FIELDS & (
    _DERIVED
    | {'actuator_gainprm', 'actuator_biasprm', 'body_mass', 'body_inertia', 'body_ipos', 'body_iquat'}
    | {'dof_armature', 'dof_damping', 'dof_frictionloss', 'geom_friction'}
)
"""Fields that can have their own values in each env."""
STATE = ('qpos', 'qvel', 'mocap_pos', 'mocap_quat')
"""Arrays of `MjData` that PhysX has, too."""
MASSES = ('body_mass', 'body_inertia', 'body_ipos', 'body_iquat')
"""Fields of masses."""
VISUAL = frozenset(name for name in MODEL_FIELDS if name.startswith(_VISUAL_PREFIXES))
"""Fields of what is only seen."""
