"""Contact forces on all links of a robot."""

from __future__ import annotations

import dataclasses
from typing import Any

from typing_extensions import override

from internutopia.core.sensor.sensor import BaseSensor
from internutopia.model.spec import RobotSpec


@BaseSensor.register('LinkContacts')
class LinkContacts(BaseSensor):
    """Net contact force on each link, feet first (`ArticulationView.contact_links`).

    - `forces` `(k, 3)`: [N], env axes, of the last substep. Contacts between links of the robot count on both.
    """

    batched = True

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        return dataclasses.replace(model, all_contacts=True)

    @override
    def get_data(self) -> dict[str, Any]:
        return {'forces': self._robot.articulation.view.get_contact_forces()[self._scene.env_id]}
