"""The task: move a cup to a goal. The metric looks at the vertices of its mesh on the stage."""
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleVariableOverride=false

import numpy as np

from internutopia.core.config.task import MetricCfg, TaskCfg
from internutopia.core.task import BaseTask
from internutopia.core.task.metric import BaseMetric


class CupMetricCfg(MetricCfg):
    type: str = 'CupMetric'
    name: str = 'cup'


class CupTaskCfg(TaskCfg):
    type: str | None = 'CupTask'
    goal: list
    max_steps: int


@BaseTask.register('CupTask')
class CupTask(BaseTask):
    def load(self):
        import omni.usd

        super().load()
        self.stage = omni.usd.get_context().get_stage()

    def is_done(self) -> bool:
        self.steps += 1
        return self.steps >= self.config.max_steps


@BaseMetric.register('CupMetric')
class CupMetric(BaseMetric):
    """Success: all vertices of the cup are within 6 cm of the goal along x and y, and none is above 6 cm."""

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.highest = 0.0
        self.stage = None

    def vertices(self) -> np.ndarray:
        import omni.usd
        from omni.isaac.core.utils.mesh import get_mesh_vertices_relative_to
        from pxr import UsdGeom

        if self.stage is None:
            self.stage = omni.usd.get_context().get_stage()
        mesh = UsdGeom.Mesh(self.stage.GetPrimAtPath(f'/World/env_{self.env_id}/objects/cup/body'))
        return get_mesh_vertices_relative_to(mesh, self.stage.GetPrimAtPath(f'/World/env_{self.env_id}'))

    def update(self, obs: dict):
        self.highest = max(self.highest, float(self.vertices()[:, 2].max()))

    def calc(self) -> dict:
        vertices = self.vertices()
        away = np.abs(vertices[:, :2] - np.array(self.task_config.goal)).max()
        return {
            'success': bool(away < 0.06 and vertices[:, 2].max() < 0.06),
            'away': float(away),
            'highest': self.highest,
            'middle': vertices.mean(axis=0).tolist(),
        }
