"""World on `ovphysx`: PhysX on the CPU without Isaac Sim, each env in its own physics scene.

A trajectory does not depend on the env id, on the number of envs or on threads, bit for bit.
"""

from __future__ import annotations

from importlib.metadata import version

from typing_extensions import override

from internutopia.engines.physx.runtime import PhysxStage
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import TensorAccess
from internutopia.engines.physx.world import PhysxWorld

ENGINE = f'PhysX (ovphysx {version("ovphysx")})'


class OvphysxWorld(PhysxWorld):
    """Envs on `ovphysx`."""

    engine = ENGINE

    @override
    def _open_stage(self, layout: StageLayout, slots: int) -> TensorAccess:
        return PhysxStage(layout, slots)
