"""Names of InternUtopia 2.x that have no meaning here: one table, with what to use instead.

Using one of them is an error with that text. `docs/porting.md` shows the same table (`tools/make_reference.py`).
Modules that held nothing else have no file: a finder, which comes after all others, makes them when they are imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from typing_extensions import override

from internutopia.util.gone_names import GONE_NAMES, raise_if_gone

_DATA_HUB = (
    'actions, observations and messages do not go through the DataHub, which only holds the tasks that are finished'
)
_STAGE = (
    "objects and bodies are found by name: env.runner.get_obj(name).get_pose(); `internutopia inspect` lists a file's"
)
_HANDS = (
    'internutopia teleop has a person move arms with an InverseKinematicsController; a script sends it poses of hands, '
    'or joint targets to a JointController'
)
_RMPFLOW = 'an InverseKinematicsController has the same actions'
_ORACLE = 'no robot could take what it gave; set the pose of the robot, robot.articulation.set_pose'


@dataclass(frozen=True)
class Gone:
    """Names that 2.x had in one place, a module, a class or a registry (`'controller'`), and what to use instead."""

    place: str
    names: tuple[str, ...]
    instead: str

    def message(self, name: str) -> str:
        """Return the error message for one of the names."""
        what = f'{self.place}.{name}' if '.' in self.place else f'{self.place} type {name!r}'
        return f'{what} of InternUtopia 2.x is not here: {self.instead}'


GONE = (
    Gone('controller', ('RMPFlowController',), _RMPFLOW),
    Gone('controller', ('GR1TeleOpController', 'FrankaMocapTeleopController', 'LayoutEditMocapController'), _HANDS),
    Gone('controller', ('MoveToPointOracleController', 'RotateOracleController'), _ORACLE),
    Gone('internutopia.macros', ('macros',), 'its only settings are in gm'),
    Gone('internutopia.core.datahub', ('IsaacData', 'ActionData', 'MetaActionData'), _DATA_HUB),
    Gone(
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
    Gone('internutopia.core.util', ('AsyncRequest',), 'a library for HTTP, such as httpx, does it'),
    Gone(
        'internutopia.core.util.chat',
        ('AgentChat',),
        'messages are the business of the script; the DataHub only holds the tasks that are finished',
    ),
    Gone('internutopia.core.util.clear_task', ('clear_stage_by_prim_path',), 'Env.reset removes what ran in an env'),
    Gone(
        'internutopia.core.util.extensions_utils',
        ('dump_extensions', 'reload_extensions'),
        'workers of a distributed run get all registered classes, rewards too, without a call',
    ),
    Gone(
        'internutopia.core.util.log',
        ('LogConfig', 'log_dict', 'config'),
        "logging is configured as always in Python, e.g. logging.getLogger('internutopia').setLevel('ERROR')",
    ),
    Gone(
        'internutopia.core.util.omni_usd_util',
        (
            *('compute_path_bbox', 'get_pick_position', 'get_grabbed_able_xform_paths'),
            *('get_world_transform_xform', 'nearest_xform_from_position'),
        ),
        _STAGE,
    ),
    Gone(
        'internutopia.core.util.physics_status_util',
        tuple(f'{verb}_{what}_status' for what in ('rigidbody', 'articulation') for verb in ('get', 'set')),
        'Env.get_state and Env.set_state save and restore envs, to the bit',
    ),
    Gone(
        'internutopia.core.util.rsl_rl',
        ('pickle',),
        'internutopia.rl.policy.load_policy reads policies (ONNX, TorchScript), torch.load reads checkpoints',
    ),
    Gone(
        'internutopia.core.util.rsl_rl',
        ('normalizer',),
        'a policy file holds the normalization of its observations; rsl_rl.modules has classes for it',
    ),
    Gone(
        'internutopia.core.util.space',
        ('get_action_space_by_task',),
        'gym_env.Env(config).action_space; vec_env.Env has one per controller',
    ),
    Gone('internutopia.core.util.space', ('get_observation_space_by_task',), 'gym_env.Env(config).observation_space'),
    Gone(
        'internutopia_extension.controllers.rmpflow_controller',
        ('RMPFlowController',),
        _RMPFLOW,
    ),
    Gone(
        'internutopia_extension.interactions.keyboard',
        ('KeyboardController',),
        'KeyboardInteraction().get_input() reads the keys',
    ),
    Gone(
        'internutopia_extension.interactions.visionpro.visionpro',
        ('VuerTeleop', 'OpenTeleVision', 'VuerPreprocessor'),
        f'it streams to an Apple Vision Pro with the package vuer; {_HANDS}',
    ),
)
"""All of them."""


class _Finder(MetaPathFinder, Loader):
    """Finder of modules of the table, and of the packages that they are in."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_package = any(row.place.startswith(f'{fullname}.') for row in GONE)
        if path is None or not (is_package or fullname in GONE_NAMES):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    @override
    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(
            __doc__='A module of InternUtopia 2.x, which is not here.', __getattr__=raise_if_gone(module.__name__)
        )


_FINDER = _Finder()


def install() -> None:
    """Register the messages, and make modules importable whose names are all gone; may be called again."""
    for row in GONE:
        GONE_NAMES[row.place].update({name: row.message(name) for name in row.names})
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
