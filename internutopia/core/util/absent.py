"""Names of InternUtopia 2.x that have no meaning here: one table, which says what to use instead.

Using one of them is an error with that text. `docs/porting.md` shows the same table (`tools/make_reference.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_DATA_HUB = 'actions, observations and messages do not go through the DataHub; it knows which tasks are finished'
_STAGE = (
    "objects and bodies are asked by name: env.runner.get_obj(name).get_pose(); `internutopia inspect` lists a file's"
)
_HANDS = 'a script sends poses of hands to an InverseKinematicsController, or joint targets to a JointController'
_RMPFLOW = 'an InverseKinematicsController has the same actions'
_ORACLE = 'no robot could take what it gave; set the pose of the robot, robot.articulation.set_pose'


@dataclass(frozen=True)
class Absent:
    """Names that 2.x had in one place, a module, a class or a registry (`'controller'`), and what to use instead."""

    place: str
    names: tuple[str, ...]
    instead: str

    def message(self, name: str) -> str:
        """What a user is told who asks for one of the names."""
        what = f'{self.place}.{name}' if '.' in self.place else f'{self.place} type {name!r}'
        return f'{what} of InternUtopia 2.x is not here: {self.instead}'


ABSENT = (
    Absent('controller', ('RMPFlowController',), _RMPFLOW),
    Absent('controller', ('GR1TeleOpController', 'FrankaMocapTeleopController', 'LayoutEditMocapController'), _HANDS),
    Absent('controller', ('MoveToPointOracleController', 'RotateOracleController'), _ORACLE),
    Absent('internutopia.macros', ('macros',), 'its only settings are in gm'),
    Absent('internutopia.core.datahub', ('IsaacData', 'ActionData', 'MetaActionData'), _DATA_HUB),
    Absent(
        'internutopia.core.datahub.DataHub',
        (
            *(
                'gen_task_idx',
                'datahub_init',
                'set_actions',
                'get_actions_by_task_name',
                'set_obs_data',
                'get_obs_data',
            ),
            *(f'{verb}_obs_by_task_name{end}' for verb in ('set', 'get') for end in ('', '_and_robot_name')),
            *('send_chat_control', 'get_chat_control', 'send_log_data', 'get_log_data', 'send_chain_of_thought'),
        ),
        _DATA_HUB,
    ),
    Absent('internutopia.core.util', ('AsyncRequest',), 'a library for HTTP, such as httpx, does it'),
    Absent(
        'internutopia.core.util.chat',
        ('AgentChat',),
        'messages are the business of the script; the DataHub only knows which tasks are finished',
    ),
    Absent('internutopia.core.util.clear_task', ('clear_stage_by_prim_path',), 'Env.reset removes what ran in an env'),
    Absent(
        'internutopia.core.util.extensions_utils',
        ('dump_extensions', 'reload_extensions'),
        'workers of a distributed run get all registered classes, rewards too, without a call',
    ),
    Absent(
        'internutopia.core.util.log',
        ('LogConfig', 'log_dict', 'config'),
        "logging is configured as always in Python, e.g. logging.getLogger('internutopia').setLevel('ERROR')",
    ),
    Absent(
        'internutopia.core.util.omni_usd_util',
        (
            *('compute_path_bbox', 'get_pick_position', 'get_grabbed_able_xform_paths'),
            *('get_world_transform_xform', 'nearest_xform_from_position'),
        ),
        _STAGE,
    ),
    Absent(
        'internutopia.core.util.physics_status_util',
        tuple(f'{verb}_{what}_status' for what in ('rigidbody', 'articulation') for verb in ('get', 'set')),
        'Env.get_state and Env.set_state save and restore envs, to the bit',
    ),
    Absent(
        'internutopia.core.util.rsl_rl',
        ('pickle',),
        'internutopia.rl.policy.load_policy reads policies (ONNX, TorchScript), torch.load reads checkpoints',
    ),
    Absent(
        'internutopia.core.util.rsl_rl',
        ('normalizer',),
        'a policy file holds the normalization of its observations; rsl_rl.modules has classes for it',
    ),
    Absent(
        'internutopia.core.util.space',
        ('get_action_space_by_task',),
        'gym_env.Env(config).action_space; vec_env.Env has one per controller',
    ),
    Absent('internutopia.core.util.space', ('get_observation_space_by_task',), 'gym_env.Env(config).observation_space'),
    Absent(
        'internutopia_extension.controllers.rmpflow_controller',
        ('RMPFlowController',),
        _RMPFLOW,
    ),
    Absent(
        'internutopia_extension.interactions.keyboard',
        ('KeyboardController',),
        'KeyboardInteraction().get_input() reads the keys',
    ),
    Absent(
        'internutopia_extension.interactions.visionpro.visionpro',
        ('VuerTeleop', 'OpenTeleVision', 'VuerPreprocessor'),
        f'it streams to an Apple Vision Pro with the package vuer; {_HANDS}',
    ),
)
"""All of them."""


def absent_in(place: str) -> dict[str, str]:
    """Messages by name for a place of the table."""
    return {name: row.message(name) for row in ABSENT if row.place == place for name in row.names}


def absent(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module: an ImportError for names that 2.x had there."""
    messages = absent_in(module)

    def get(name: str) -> Any:
        if name in messages:
            raise ImportError(messages[name], name=module)
        raise AttributeError(f'module {module!r} has no attribute {name!r}')

    return get
