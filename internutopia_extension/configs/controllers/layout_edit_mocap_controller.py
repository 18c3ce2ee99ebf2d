"""Config of editing a scene's layout by motion capture."""

from internutopia.config.fields import Vector
from internutopia.config.robot import ControllerCfg


class LayoutEditMocapControllerCfg(ControllerCfg):
    """Picking and placing of things by the hands of a captured person; needs an RMPFlow controller below it.

    Read besides the declared fields: `hand_scale`, `right_hand_path`, `left_hand_path`, `right_hand_prim_path`,
    `left_hand_prim_path`, `save_asset_path`, `save_robot`.
    """

    type: str = 'LayoutEditMocapController'
    scale: Vector
    """Hand motion in the scene per captured motion along x, y, z."""
    target_position: Vector
    """Point that the camera faces (x, y, z), m, env frame."""
    rh_origin_xyz: Vector | None = None
    """Rest position of the right hand (x, y, z), m, env frame; None means the class's own."""
    lh_origin_xyz: Vector | None = None
    """Rest position of the left hand (x, y, z), m, env frame; None means the class's own."""
    origin_xyz_angle: Vector | None = None
    """Turn of the captured person about x, y, z, rad; None means none."""
