"""Sensors on the deck."""

from typing import Any

from internutopia.core.sensor.sensor import BaseSensor


@BaseSensor.register('DeckSensor')
class DeckSensor(BaseSensor):
    def post_reset(self):
        self.mast = self._robot._rigid_body_map[self._robot.config.prim_path + '/mast']
        self.resets = getattr(self, 'resets', 0) + 1

    def get_data(self) -> dict:
        position, _ = self.mast.get_pose()
        return self._make_ordered({'mast': position, 'velocity': self.mast.get_linear_velocity()})


@BaseSensor.register('BatchDeckSensor')
class BatchDeckSensor(BaseSensor):
    batched = True

    def __init__(self, config: Any, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.mast = robot.articulation.body('mast')

    def get_data(self) -> dict:
        return {'mast': self.mast.get_pose()[0], 'velocity': self.mast.get_linear_velocity()}
