"""Config of the controller that sets a model's own actuators."""

from internutopia.config.robot import ControllerCfg


class ActuatorControllerCfg(ControllerCfg):
    """Raw control signals of the actuators that a model file defines, in the model's order and units."""

    type: str = 'ActuatorController'
    name: str = 'actuators'
