"""Remote workers: envs on a server for a viewer, a `WorkerEnvs` whose one worker is the server's."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from internutopia.core.runner.interfaces import Question
from internutopia.remote.call_errors import RemoteError, VersionMismatchError
from internutopia.remote.remote_session import RemoteSession
from internutopia.remote.viewer_protocol import (
    CommandedRobot,
    GetScene,
    RobotCamera,
    ScenePart,
    SeenEnvs,
    SeenRobot,
    ViewEnvs,
)
from internutopia.util.imports import install_hint
from internutopia.viewer.frames import EpisodeFacts, Frame, Report, RobotFacts, ShownRobot, ShownScene, ViewRequest
from internutopia.viewer.robot_controls import RobotControls, VelocityControl
from internutopia.viewer.source import CloseCall, EnvReply, FrameCall, FrameReply

_TIMEOUT = 5.0  # s: the run waits for a frame
_PAUSE = 1.0  # s, after one that failed
_SCENE_TIMEOUT = 20.0  # s, of a part of a model


class RemoteWorkers:
    """Envs of a session: one group, with the length of a call as that of a step.

    Only requests of viewers are answered. After the first answer nothing is raised: errors are in the client's log,
    and are raised by the program's own calls.

    Raises:
        VersionMismatchError: the models of the server cannot be read here.
    """

    def __init__(self, session: RemoteSession):
        self.env_num = session.num_envs
        self.groups: Sequence[range] = [range(session.num_envs)]
        self.step_dt = session.facts.step_dt * session.step_size
        self.watchers = session.watchers
        self._session = session
        self._answered = False
        self._next_try = 0.0  # [s]
        _check_mujoco(session)

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Run a request in the worker, see `WorkerEnvs`; the first one may also raise a `RemoteError`."""
        ((group, question),) = questions.items()
        try:
            if isinstance(question, CloseCall):
                request = ViewEnvs(session_id=self._session.session_id, viewer=question.name, last=True)
                self._session.client.post_once('session/look', request, SeenEnvs, _TIMEOUT)
                return {group: None}
            assert isinstance(question, FrameCall)
            if time.monotonic() < self._next_try:
                return {}
            answer = self._frame(question)
        except RemoteError:
            if not self._answered:
                raise
            self._next_try = time.monotonic() + _PAUSE
            return {}
        self._answered = True
        return {group: answer}

    def _frame(self, call: FrameCall) -> FrameReply:
        view = call.view
        request = ViewEnvs(
            session_id=self._session.session_id,
            viewer=call.name,
            env_ids=list(call.env_ids),
            env=view.env_id,
            in_place=view.all_envs,
            report=call.report,
            cameras=[RobotCamera(robot=robot, camera=camera) for robot, camera in sorted(view.cameras)],
            robots=_commands(view),
        )
        reply = self._session.client.post_once('session/look', request, SeenEnvs, _TIMEOUT)
        digests = [bytes.fromhex(digest) for digest in reply.scenes]
        scenes = {digest: self._scene(digest) for digest in digests if digest not in call.known}
        states = np.split(reply.states, np.cumsum(reply.state_sizes))  # and nothing at last
        rows = zip(reply.env_ids.tolist(), reply.origins, reply.scene_of.tolist(), states, strict=False)
        envs = [EnvReply(env_id, origin, digests[scene], state) for env_id, origin, scene, state in rows]
        report = None
        if reply.figures is not None:
            report = Report(reply.figures, {(each.robot, each.camera): each.rgb for each in reply.pictures})
        if reply.episode is None:
            return FrameReply(Frame(report=report), envs, scenes)
        facts = EpisodeFacts(reply.episode.env, reply.episode.title, tuple(map(_robot, reply.episode.robots)))
        return FrameReply(Frame((), facts, reply.episode.time, report), envs, scenes)

    def _scene(self, digest: bytes) -> ShownScene:
        """Fetch a scene, part by part. InvalidRequestError if no env runs it any more."""
        model = bytearray()
        while True:
            request = GetScene(session_id=self._session.session_id, digest=digest.hex(), start=len(model))
            reply = self._session.client.post_once('session/scene', request, ScenePart, _SCENE_TIMEOUT)
            model += reply.part.tobytes()
            if len(model) >= reply.size or not len(reply.part):
                break
        robots = {name: ShownRobot(robot.root, robot.qpos.astype(np.intp)) for name, robot in reply.robots.items()}
        try:
            compiled = mujoco.MjModel.from_binary_path('scene.mjb', {'scene.mjb': bytes(model)})
        except ValueError as error:
            raise RemoteError(f'the server sent a scene that MuJoCo does not read: {error}') from None
        return ShownScene(digest, compiled, robots)


def _check_mujoco(session: RemoteSession) -> None:
    """Raise a VersionMismatchError if this MuJoCo cannot read the models of the server's."""
    theirs, url = session.facts.mujoco, session.client.base_url
    if theirs is None:
        raise VersionMismatchError(
            f'the server {url} is too old for the viewer of remote envs: {install_hint("remote")} there', 'version'
        )
    if theirs != mujoco.__version__:
        raise VersionMismatchError(
            f'the viewer cannot read scenes of the server {url}, which has MuJoCo {theirs}; this is MuJoCo '
            f"{mujoco.__version__}: pip install 'mujoco=={theirs}'",
            'version',
        )


def _commands(view: ViewRequest) -> list[CommandedRobot]:
    """Return the commands to robots; the array API, which a server runs, takes joints and speeds."""
    commanded: list[CommandedRobot] = []
    for env_id, robot in sorted(view.commanded):
        command = view.commands.get((env_id, robot))
        speeds = None if command is None or command.speeds is None else list(command.speeds)
        joints = dict(view.joints.get((env_id, robot), {}))
        commanded.append(CommandedRobot(env=env_id, robot=robot, joints=joints, speeds=speeds))
    return commanded


def _robot(robot: SeenRobot) -> RobotFacts:
    joints = {
        joint: (-math.inf if low is None else low, math.inf if high is None else high)
        for joint, (low, high) in robot.joints.items()
    }
    speeds = robot.speeds
    velocity = None
    if speeds is not None:
        velocity = VelocityControl(speeds.name, tuple(speeds.labels), tuple(speeds.low), tuple(speeds.high))
    return RobotFacts(joints, frozenset(robot.held), RobotControls(robot.robot, velocity), tuple(robot.cameras))
