"""Beacon: a box without a collider."""

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec
from rover_lab.configs import BeaconCfg


@BaseObject.register('Beacon')
class Beacon(BaseObject):
    @classmethod
    def model(cls, config: BeaconCfg) -> ObjectSpec:
        return ObjectSpec(
            name=config.name,
            scale=(0.1, 0.1, config.height),
            position=config.position,
            orientation=config.orientation,
            dynamic=False,
            collider=False,
        )

    def set_up_to_scene(self, scene):
        self.start = self.body.get_pose()[0]
