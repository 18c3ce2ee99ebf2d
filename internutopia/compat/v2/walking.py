"""Walking policies in the form that 2.x had them, and the controller that runs them.

2.x kept checkpoints of rsl_rl (`.pt`) and ONNX files that do not say how to run them: its controllers did. `FORMS` has
what they knew, by type of controller: observations, order and scale of actions, from InternUtopia 2.2.1 (MIT). A policy
acts at every 4th call, and the joints keep their targets in between.

`internutopia.compat.v2.runtime_configs` puts them to work where a config names such a file.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.imports import install_hint
from internutopia.util.rotations import quat_rotate_inverse

Floats = NDArray[np.float32]
Network = Callable[[Floats], Floats]

TYPE = 'WalkingPolicyOf2x'
"""Type of `WalkingPolicyController`."""
_REPEATS = 3  # calls between two inferences
_COMMAND_SCALE = (2.0, 2.0, 0.25)
_HEIGHTS = 121  # points of the ground below H1, all of them level with its lower ankle


@dataclass(frozen=True)
class Form:
    """Form of the policies of a controller of 2.x.

    A frame: command, for some with the base height; angular velocity * 0.25 and gravity in the frame of a link; joint
    positions relative to the home pose, joint velocities * 0.05 and last actions of the observed joints; for some the
    linear velocity * 2. The observation: the last frames, then for some the heights of the ground.

    Attributes:
        robot: type of robot whose home pose zero actions stand for.
        size: numbers in an observation.
        scale: change of a joint target for an action of one [rad].
        frames: number of frames in an observation.
        driven: number of joints that the network drives, the first ones in its order; the others follow the command.
        newest_first: order of the frames.
        link: link whose motion is observed; None is the robot's base.
        height: base height without a command [m]; None means that there is none in the command.
        ground: True if linear velocity and heights are observed.
        upper_scale: factor of commanded targets of the joints that the network does not drive.
        elbows: target of the elbows without a command [rad].
        unobserved: beginnings of the names of joints that are not observed.
    """

    robot: str
    size: int
    scale: float
    frames: int
    driven: int
    newest_first: bool = False
    link: str | None = None
    height: float | None = None
    ground: bool = False
    upper_scale: float = 1.0
    elbows: float = 0.0
    unobserved: tuple[str, ...] = ()


FORMS = {
    'H1MoveBySpeedController': Form('H1Robot', 471, 0.25, frames=5, driven=19, ground=True),
    'AliengoMoveBySpeedController': Form('AliengoRobot', 270, 0.5, frames=6, driven=12, newest_first=True),
    'G1MoveBySpeedController': Form(
        'G1Robot', 546, 0.25, frames=6, driven=12, link='imu_link', height=0.74, upper_scale=0.25
    ),
    'GR1MoveBySpeedController': Form(
        'GR1Robot', 636, 0.25, frames=6, driven=12, link='imu_link', height=0.9, elbows=-1.25, unobserved=('L_', 'R_')
    ),
}
"""Forms by type of controller."""


@BaseController.register(TYPE)
class WalkingPolicyController(BaseController):
    """Walking by a policy file of 2.x, with the action of the controller of 2.x whose type is `config.form`.

    Action: forward, lateral [m/s] and rotation speed [rad/s]; for G1 and GR1 then optionally the base height [m] and
    targets of the joints that the policy does not drive [rad], None for the default of each.

    Attributes:
        joint_subset: joints in the order of the policy.
        applied_joint_positions: targets of these joints that hold until the policy acts again [rad].
    """

    batched = True
    commands = 'drives'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        given: Any = config
        form = self._form = FORMS[given.form]
        self._network = load(given.policy_weights_path, given.form)
        names: list[str] = getattr(BaseController.controllers[given.form], 'joint_names_gym', given.joint_names)
        self.joint_subset = ArticulationSubset(robot.articulation, names)
        home = BaseRobot.robots[form.robot].home
        self._home = np.array([home.get(name, 0.0) for name in names], np.float32)
        self._upper = np.array([form.elbows if 'elbow' in name else 0.0 for name in names[form.driven :]], np.float32)
        self._observed = [index for index, name in enumerate(names) if not name.startswith(form.unobserved or '\0')]
        size, joints = (form.size - form.ground * _HEIGHTS) // form.frames, len(names)
        # rows over envs, also where there is one env and no env axis
        self._frames = self.state((form.frames, size)).reshape(-1, form.frames, size)
        self._action = self.state((joints,)).reshape(-1, joints)
        self._left = self.state((), 0, np.int64).reshape(-1)
        self.applied_joint_positions = self.state((joints,), self._home)

    @override
    def parse_action(self, action: Any) -> Floats:
        """Return one env's action: speeds `(3,)`, or with height and the joints above the legs `(4 + k,)`."""
        meaning = 'forward speed, lateral speed, rotation speed'
        if self._form.height is None:
            return box_action(action, (3,), f' ({meaning})')
        if not isinstance(action, list | tuple | np.ndarray) or not 3 <= len(action) <= 5:
            raise ValueError(
                f'expected [{meaning}], then base height and {len(self._upper)} joint targets, got {action!r}'
            )
        height, upper = (given if given is not None else default for given, default in self._defaults(action))
        parts = (list(action[:3]), (3,)), ([height], (1,)), (upper, self._upper.shape)
        return np.concatenate([box_action(values, shape) for values, shape in parts])

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        rest = () if action.shape[-1] == 3 else (action[..., 3], action[..., 4:])
        return self.forward(action[..., 0], action[..., 2], action[..., 1], *rest, env_ids=env_ids)

    def forward(
        self,
        forward_speed: Any = 0.0,
        rotation_speed: Any = 0.0,
        lateral_speed: Any = 0.0,
        height: Any = None,
        target_upper_joint_pos: Any = None,
        env_ids: Any = ...,
    ) -> ArticulationAction:
        """Compute joint targets for speeds [m/s, rad/s, m/s], base height [m] and targets of the upper body [rad]."""
        rows = np.zeros(1, np.intp) if env_ids is ... else np.asarray(env_ids)
        due = self._left[rows] <= 0
        if due.any():
            command = np.zeros((len(rows), 4), np.float32)
            speeds = forward_speed, lateral_speed, rotation_speed
            for column, (speed, scale) in enumerate(zip(speeds, _COMMAND_SCALE, strict=True)):
                command[:, column] = speed * scale
            command[:, 3] = (self._form.height or 0.0) if height is None else height
            upper = np.empty((len(rows), len(self._upper)), np.float32)
            upper[:] = self._upper if target_upper_joint_pos is None else target_upper_joint_pos
            self._decide(rows[due], command[due], upper[due])
        self._left[rows] = np.where(due, _REPEATS, self._left[rows] - 1)
        return self.joint_subset.make_articulation_action(self.applied_joint_positions[env_ids].copy())

    def _defaults(self, action: Any) -> Sequence[tuple[Any, Any]]:
        given = [*action[3:], None, None]
        return (given[0], self._form.height), (given[1], self._upper)

    def _decide(self, rows: NDArray[np.intp], command: Floats, upper: Floats) -> None:
        """Run the policy for some rows, on commands `(m, 4)` and targets of the joints above the legs `(m, k)`."""
        form, frames = self._form, np.roll(self._frames[rows], 1 if self._form.newest_first else -1, axis=1)
        frames[:, 0 if form.newest_first else -1], heights = self._observe(rows, command)
        self._frames[rows] = frames
        observations = np.concatenate([frames.reshape(len(rows), -1), heights], axis=-1)
        actions = np.concatenate([self._network(row) for row in observations[:, None]])
        if form.height is not None:
            actions = np.clip(actions, -100.0, 100.0)
        self._action[rows] = np.concatenate([actions, upper], axis=-1)
        targets = self._home[: form.driven] + form.scale * actions
        applied = self.applied_joint_positions.reshape(self._action.shape)
        applied[rows] = np.concatenate([targets, form.upper_scale * upper], axis=-1)

    def _observe(self, rows: NDArray[np.intp], command: Floats) -> tuple[Floats, Floats]:
        """Return the present frames `(m, size)` and, of policies that see the ground, its heights `(m, 121)`."""
        form, observed = self._form, self._observed
        robot: Any = self.robot
        body = robot.articulation.body
        link = robot.get_robot_base() if form.link is None else body(form.link)

        def of_rows(values: Any) -> Floats:
            return values.reshape(-1, values.shape[-1])[rows]

        position, orientation = map(of_rows, link.get_pose())
        turned = (
            of_rows(link.get_angular_velocity()) * 0.25,
            np.tile(np.array([0.0, 0.0, -1.0], np.float32), (len(rows), 1)),
        )
        positions = of_rows(self.joint_subset.get_joint_positions()) - self._home
        velocities = of_rows(self.joint_subset.get_joint_velocities()) * 0.05
        parts: list[Any] = [command if form.ground or form.height is not None else command[:, :3]]
        parts += [quat_rotate_inverse(orientation, vector) for vector in turned]
        parts += [values[:, observed] for values in (positions, velocities, self._action[rows])]
        heights: Any = np.empty((len(rows), 0), np.float32)
        if form.ground:
            parts.append(quat_rotate_inverse(orientation, of_rows(link.get_linear_velocity())) * 2.0)
            ankles = [of_rows(body(f'{side}_ankle_link').get_pose()[0])[:, 2:] for side in ('left', 'right')]
            above = position[:, 2:] - np.minimum(*ankles) - 0.5
            heights = np.repeat(above.clip(-1.0, 1.0) * 5.0, _HEIGHTS, axis=-1)
        frame = np.concatenate(parts, axis=-1, dtype=np.float32)
        return frame if form.height is None else frame.clip(-100.0, 100.0), heights


@lru_cache(64)
def is_of_2x(file: Path) -> bool:
    """Return True for a checkpoint, and for an ONNX file that does not say how to run it."""
    if file.suffix == '.pt':
        if not zipfile.is_zipfile(file):
            return True
        with zipfile.ZipFile(file) as archive:  # TorchScript is a program
            return not any('/code/' in name for name in archive.namelist())
    return file.suffix == '.onnx' and b'"joint_names"' not in file.read_bytes()  # of `PolicyMetadata`


@lru_cache(64)
def load(file: str | os.PathLike[str], controller: str) -> Network:
    """Return the network in a policy file, a function from observations `(1, size)` to actions `(1, k)`.

    Raises:
        ImportError: what reads such files is not installed.
        ValueError: the file is not what the controller of 2.x took; the message says how.
    """
    form, path = FORMS[controller], Path(file)
    network = _checkpoint(path) if path.suffix == '.pt' else _onnx(path)
    try:
        given = network(np.zeros((1, form.size), np.float32)).shape
    except Exception as error:  # those of the libraries have no common base
        raise ValueError(f'policy {path}: it does not take the {form.size} numbers of {controller} of 2.x') from error
    if given != (1, form.driven):
        raise ValueError(f'policy {path}: it gives {given[-1]} actions, {controller} of 2.x took {form.driven}')
    return network


def _onnx(file: Path) -> Network:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(f'policy {file} needs onnxruntime ({error}): {install_hint("policies")}') from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(os.fspath(file), options, providers=['CPUExecutionProvider'])
    except Exception as error:  # likewise
        raise ValueError(f'policy {file} cannot be read: {error}') from error
    name = session.get_inputs()[0].name
    return lambda observations: np.asarray(session.run(None, {name: observations})[0])


def _checkpoint(file: Path) -> Network:
    """Return the actor of a checkpoint, for some behind an estimator of velocity and latent state (HIM)."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f'policy {file} is a checkpoint, which needs torch ({error}): {install_hint("rl")}'
        ) from error
    try:
        content = torch.load(file, map_location='cpu', weights_only=True)
        weights = {name: value.numpy() for name, value in content['model_state_dict'].items()}
        actor = _layers(weights, 'actor')
        encoder = _layers(weights, 'estimator.encoder')
    except Exception as error:  # of a broken file nearly anything
        raise ValueError(f'policy {file} is not a checkpoint of rsl_rl ({type(error).__name__})') from error

    def infer(observations: Floats) -> Floats:
        if encoder:
            estimate = _run(encoder, observations)
            velocity, latent = estimate[:, :3], estimate[:, 3:]
            latent = latent / np.linalg.norm(latent, axis=-1, keepdims=True).clip(min=1e-12)
            own = len(actor[0][0].T) - estimate.shape[-1]
            observations = np.concatenate([observations[:, :own], velocity, latent], axis=-1)
        return _run(actor, observations)

    return infer


def _layers(weights: Mapping[str, Floats], of: str) -> list[tuple[Floats, Floats]]:
    """Return weights and biases of the linear layers of a module, in order."""
    numbers = sorted(
        int(name.split('.')[-2]) for name in weights if name.startswith(f'{of}.') and name.endswith('weight')
    )
    return [(weights[f'{of}.{i}.weight'], weights[f'{of}.{i}.bias']) for i in numbers]


def _run(layers: Sequence[tuple[Floats, Floats]], values: Floats) -> Floats:
    """Return the output of linear layers with ELU between them."""
    for index, (weight, bias) in enumerate(layers):
        if index:
            values = np.where(values > 0.0, values, np.expm1(np.minimum(values, 0.0)))
        values = values @ weight.T + bias
    return values
