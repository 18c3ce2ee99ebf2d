"""Names of InternUtopia 2.x that have no meaning here: one table, with what to use instead.

Using one of them is an error with that text. `docs/porting.md` shows the same table (`tools/make_porting.py`).
Modules that held nothing else have no file: `internutopia.compat.v2.finder` makes them when they are imported.
"""

from __future__ import annotations

from dataclasses import dataclass

from internutopia.util.conventions import GONE_NAMES

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
_HTTP = 'a library for HTTP, such as httpx, does it'
_QUEUE = 'an Env takes its episodes from a queue of its own, see Config.episode_order and env.active_task_configs'
_LOGGING = "logging is configured as always in Python, e.g. logging.getLogger('internutopia').setLevel('ERROR')"
_NORMALIZER = 'a policy file holds the normalization of its observations; rsl_rl.modules has classes for it'
_LOAD = 'internutopia.rl.policy.load_policy reads policies (ONNX, TorchScript), torch.load reads checkpoints'
_CHAT = 'messages are the business of the script; the DataHub only holds the tasks that are finished'
_UNUSED = 'nothing of InternUtopia used it'
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
    Gone('internutopia.macros', ('macros', 'default_assets_path'), 'its only settings are in gm'),
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
    Gone('internutopia.core.datahub.isaac_data', ('IsaacData', 'ActionData', 'MetaActionData'), _DATA_HUB),
    Gone(
        'internutopia.core.datahub.model_data',
        ('LogData', 'ChainOfThoughtDataItem', 'ChatControlData', 'ModelData'),
        _DATA_HUB,
    ),
    *(
        Gone(f'internutopia.core.distribution.{module}', (name,), 'Env(config.distribute(...)) starts the workers')
        for module, name in (('launcher', 'Launcher'), ('runner_proxy', 'RunnerProxy'))
    ),
    *(
        Gone(
            module,
            ('import_all_modules_for_register',),
            'importing a module registers its classes; a package announces its own in entry points '
            '"internutopia.extensions"',
        )
        for module in ('internutopia.core.register', 'internutopia.core.register.register')
    ),
    Gone(
        'internutopia.core.task_config_manager.base',
        ('setup_offset_for_assets', 'BaseTaskConfigManager', 'create_task_config_manager'),
        _QUEUE,
    ),
    Gone('internutopia.core.task_config_manager.distributed', ('DistributedTaskConfigManager',), _QUEUE),
    Gone('internutopia.core.task_config_manager.local', ('LocalTaskConfigManager',), _QUEUE),
    Gone(
        'internutopia.core.scene',
        ('validate_scene_file',),
        'an Env checks scene_asset_path, before it starts; `internutopia inspect` says what is in a file',
    ),
    Gone('internutopia.core.util', ('AsyncRequest',), _HTTP),
    Gone('internutopia.core.util.async_req', ('AsyncRequest', 'message_send_loop', 'start_loop'), _HTTP),
    *(Gone(f'internutopia.core.util.{module}', ('AgentChat',), _CHAT) for module in ('chat', 'chat.agent_chat')),
    Gone('internutopia.core.util.clear_task', ('clear_stage_by_prim_path',), 'Env.reset removes what ran in an env'),
    Gone(
        'internutopia.core.util.extensions_utils',
        ('dump_extensions', 'reload_extensions'),
        'workers of a distributed run get all registered classes, rewards too, without a call',
    ),
    Gone(
        'internutopia.core.util.log',
        ('LogConfig', 'Logger', 'log_dict', 'config'),
        _LOGGING,
    ),
    Gone('internutopia.core.util.log.logger', ('Logger',), _LOGGING),
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
        'internutopia.core.util.python',
        (
            *('ClassProperty', 'subclass_factory', 'save_init_info', 'RecreatableMeta', 'RecreatableAbcMeta'),
            *('Recreatable', 'create_object_from_init_info', 'merge_nested_dicts', 'get_class_init_kwargs'),
            *('extract_subset_dict', 'extract_class_init_kwargs_from_dict', 'assert_valid_key', 'get_uuid'),
            *('create_class_from_registry_and_config', 'camel_case_to_snake_case', 'snake_case_to_camel_case'),
            *('meets_minimum_version', 'UniquelyNamed', 'UniquelyNamedNonInstance', 'Registerable', 'Serializable'),
            *('SerializableNonInstance', 'Wrapper', 'clear'),
        ),
        _UNUSED,
    ),
    Gone('internutopia.core.util.rsl_rl', ('pickle',), _LOAD),
    Gone('internutopia.core.util.rsl_rl', ('normalizer',), _NORMALIZER),
    Gone('internutopia.core.util.rsl_rl.pickle', ('Unpickler',), _LOAD),
    Gone('internutopia.core.util.rsl_rl.normalizer', ('RunningMeanStd', 'Normalizer', 'Normalize'), _NORMALIZER),
    Gone(
        'internutopia.core.util.space',
        ('get_action_space_by_task',),
        'gym_env.Env(config).action_space; vec_env.Env has one per controller',
    ),
    Gone('internutopia.core.util.space', ('get_observation_space_by_task',), 'gym_env.Env(config).observation_space'),
    Gone(
        'internutopia.login_openxlab',
        ('login_to_openxlab',),
        'nothing comes from OpenXLab; `internutopia assets get` downloads scenes',
    ),
    Gone('internutopia_extension.controllers.rmpflow_controller', ('RMPFlowController',), _RMPFLOW),
    *(
        Gone(f'internutopia_extension.controllers.{robot}_move_by_speed_controller', (name,), _LOAD)
        for robot, name in (
            ('h1', 'RLPolicy'),
            ('aliengo', 'RLPolicy'),
            ('g1', 'load_onnx_policy'),
            ('gr1', 'load_onnx_policy'),
        )
    ),
    Gone(
        'internutopia_extension.controllers.gr1_move_by_speed_controller',
        ('default_upper_pose',),
        'GR1MoveBySpeedController.upper_default',
    ),
    *(
        Gone(f'internutopia_extension.controllers.{module}', names, instead)
        for module, names, instead in (
            ('franka_mocap_teleop_controller', ('FrankaMocapTeleopController',), _HANDS),
            ('gr1_teleop', ('GR1T2TeleOpHandler',), _HANDS),
            ('gr1_teleop_controller', ('GR1TeleOpController',), _HANDS),
            ('layout_edit_mocap_controller', ('LayoutEditMocapController',), _HANDS),
            ('layout_edit_controller.fixjoint_hand', ('FixjointHand',), _HANDS),
            ('layout_edit_controller.hand_control', ('HandControl',), _HANDS),
            ('layout_edit_controller.hand_position_control', ('HandPositionControl',), _HANDS),
            ('layout_edit_controller.save_asset', ('SaveAsset',), _HANDS),
            ('lcmtypes.teleop', ('action', 'joints'), _HANDS),
            ('lcmtypes.teleop.action', ('action',), _HANDS),
            ('lcmtypes.teleop.joints', ('joints',), _HANDS),
            (
                'models.aliengo.actor_critic',
                ('ActorCritic', 'Normalization', 'RunningMeanStd', 'get_activation'),
                _LOAD,
            ),
            ('models.aliengo.estimator_cl', ('Estimator_CL', 'sinkhorn', 'get_activation'), _LOAD),
            ('move_to_point_oracle_controller', ('MoveToPointOracleController',), _ORACLE),
            ('pin_ik_solver', ('PinIKSolver',), 'an InverseKinematicsController solves for the joints of an arm'),
            ('rotate_oracle', ('RotateOracleController',), _ORACLE),
        )
    ),
    *(
        Gone(f'internutopia_extension.sensors.{module}', (name,), 'robot.sensors[name].set_world_pose moves a camera')
        for module, name in (
            ('mocap_controlled_camera', 'CameraMover'),
            ('layout_edit_mocap_controlled_camera', 'LayoutCameraMover'),
        )
    ),
    Gone(
        'internutopia_extension.interactions.keyboard',
        ('KeyboardController',),
        'KeyboardInteraction().get_input() reads the keys',
    ),
    *(
        Gone(
            f'internutopia_extension.interactions.visionpro.{module}',
            names,
            f'it streams to an Apple Vision Pro with the package vuer; {_HANDS}',
        )
        for module, names in (
            ('visionpro', ('VuerTeleop', 'OpenTeleVision', 'VuerPreprocessor')),
            ('Preprocessor', ('VuerPreprocessor',)),
            ('TeleVision', ('OpenTeleVision', 'setup_logging')),
            (
                'constants_vuer',
                (
                    *('tip_indices', 'grd_yup2grd_zup', 'align_transform_l', 'align_transform_r'),
                    *('align_transform_head', 'hand2inspire_l_arm', 'hand2inspire_r_arm', 'hand2inspire_l_finger'),
                    'hand2inspire_r_finger',
                ),
            ),
            ('motion_utils', ('mat_update', 'fast_mat_inv')),
        )
    ),
)
"""All of them."""


def register() -> None:
    """Register the messages; may be called again."""
    for row in GONE:
        GONE_NAMES[row.place].update({name: row.message(name) for name in row.names})
