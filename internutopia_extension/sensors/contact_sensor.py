"""Contact sensor."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.model.spec import Probe, RobotSpec
from internutopia_extension.configs.sensors import ContactSensorCfg
from internutopia_extension.sensors.body_sensor import BodySensor, own_config


@BaseSensor.register('ContactSensor')
class ContactSensor(BodySensor):
    """Contacts of a link, an object or a movable scene body. An object includes all bodies attached to it.

    - `force` `(3,)`: net contact force on it [N], env axes. Of the last substep; in a fresh episode of its first
      instant.
    - `in_contact`: whether it touches something, with a net force of at least `config.threshold`.
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        cfg = own_config(config, ContactSensorCfg)
        self._probe = _probe(cfg)
        self._threshold = cfg.threshold
        self._noise = self.noise('force', cfg.noise)

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Enable the measurement of the contacts."""
        return dataclasses.replace(model, probes=(*model.probes, _probe(own_config(config, ContactSensorCfg))))

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        contacts = self._articulation.view.measure(self._probe)[env_ids]
        force = contacts[:, 1:]
        strong = (force * force).sum(axis=-1) >= self._threshold**2
        return {
            'force': self._noise.add_to(force, env_ids),
            'in_contact': (contacts[:, 0] > 0) & strong,
        }


def _probe(cfg: ContactSensorCfg) -> Probe:
    return Probe('contact', cfg.prim_path or '', against=cfg.against, sensor=cfg.name)
