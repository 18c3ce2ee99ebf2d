"""InternUtopia: vectorized robot simulation on one batched physics world.

    from internutopia import Config, Env, SimConfig, VectorEnv, list_tasks

Here is what scripts and extension packages use, whatever module it lives in. `internutopia.rl` has the rest for
learners, `internutopia.remote` is for envs on a server, `internutopia_extension` has robots, controllers, sensors and
tasks. Importing this package loads next to nothing; a name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from internutopia.compat import register
from internutopia.gymnasium_ids import register_own_tasks
from internutopia.util.imports import lazy

if TYPE_CHECKING:
    from internutopia.config import (
        AssetLimitsCfg,
        Config,
        ContactCfg,
        ControllerCfg,
        MetricCfg,
        ObjectCfg,
        PhysxCfg,
        RewardCfg,
        RobotCfg,
        SensorCfg,
        SimConfig,
        TaskCfg,
    )
    from internutopia.config.config import RayDistributionCfg
    from internutopia.core.gym_env import GymEnv
    from internutopia.core.object import BaseObject
    from internutopia.core.robot.articulation import IArticulation
    from internutopia.core.robot.articulation_action import ArticulationAction
    from internutopia.core.robot.controller import BaseController
    from internutopia.core.robot.rigid_body import IRigidBody
    from internutopia.core.robot.robot import BaseRobot
    from internutopia.core.scene.scene import IScene
    from internutopia.core.sensor import BaseSensor
    from internutopia.core.task import BaseMetric, BaseReward, BaseTask
    from internutopia.core.vec_env import Env
    from internutopia.model.spec import Drives, ObjectSpec
    from internutopia.rl import VectorEnv, list_tasks

__version__ = '3.0.0a1'

__all__ = [
    'ArticulationAction',
    'AssetLimitsCfg',
    'BaseController',
    'BaseMetric',
    'BaseObject',
    'BaseReward',
    'BaseRobot',
    'BaseSensor',
    'BaseTask',
    'Config',
    'ContactCfg',
    'ControllerCfg',
    'Drives',
    'Env',
    'GymEnv',
    'IArticulation',
    'IRigidBody',
    'IScene',
    'MetricCfg',
    'ObjectCfg',
    'ObjectSpec',
    'PhysxCfg',
    'RayDistributionCfg',
    'RewardCfg',
    'RobotCfg',
    'SensorCfg',
    'SimConfig',
    'TaskCfg',
    'VectorEnv',
    'list_tasks',
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys([name for name in __all__ if name.endswith('Cfg')], 'internutopia.config'),
        **dict.fromkeys(('Config', 'SimConfig'), 'internutopia.config'),
        'ArticulationAction': 'internutopia.core.robot.articulation_action',
        'BaseController': 'internutopia.core.robot.controller',
        'BaseMetric': 'internutopia.core.task',
        'BaseObject': 'internutopia.core.object',
        'BaseReward': 'internutopia.core.task',
        'BaseRobot': 'internutopia.core.robot.robot',
        'BaseSensor': 'internutopia.core.sensor',
        'BaseTask': 'internutopia.core.task',
        'Drives': 'internutopia.model.spec',
        'Env': 'internutopia.core.vec_env',
        'GymEnv': 'internutopia.core.gym_env:GymEnv',
        'IArticulation': 'internutopia.core.robot.articulation',
        'IRigidBody': 'internutopia.core.robot.rigid_body',
        'IScene': 'internutopia.core.scene.scene',
        'ObjectSpec': 'internutopia.model.spec',
        'RayDistributionCfg': 'internutopia.config.config',
        'VectorEnv': 'internutopia.rl',
        'list_tasks': 'internutopia.rl',
    },
)

register()
register_own_tasks()
