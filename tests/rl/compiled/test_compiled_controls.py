"""Controls of actuators are part of the compiled step, too."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from internutopia.config import Config, SimConfig
from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

MODEL = """<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
<actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_an_actuator_controller_is_compiled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import_extensions()
    (tmp_path / 'model.xml').write_text(MODEL)
    actuators = ActuatorControllerCfg()
    robot = GenericRobotCfg(name='robot', usd_path=str(tmp_path / 'model.xml'), controllers=[actuators])
    learning = LearningCfg(
        compiled=True,
        action=ActionCfg(controller=actuators.name),
        observations=[ObservationTermCfg(term='joint_velocities')],
    )
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], learning=learning)
    simulator = SimConfig(physics_dt=0.01)
    config = Config(
        simulator=simulator, env_num=2, task_configs=[task], episode_order='cycle', metrics_save_path='none'
    )
    with closing(VectorEnv(config)) as envs:
        envs.reset()
        observations = envs.step(np.ones((2, 1), np.float32))[0]
    assert (observations > 0.0).all()
    assert 'is not compiled' not in caplog.text
