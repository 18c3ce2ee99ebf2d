"""Config of putting a fallen robot back on its feet."""

from internutopia.config.fields import PositiveFloat
from internutopia.config.robot import ControllerCfg


class RecoverControllerCfg(ControllerCfg):
    """Recovery of a fallen robot at a given position; needs a joint controller below it."""

    type: str = 'RecoverController'
    recover_height: PositiveFloat
    """Height of the robot's base when it stands again, m above the ground."""
