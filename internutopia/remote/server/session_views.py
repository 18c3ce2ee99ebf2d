"""Requests of viewers to a session, handled between its calls: fields of the messages of `viewer_protocol`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.episodes.queue import plain
from internutopia.remote.server.service_error import ServiceError, invalid
from internutopia.rl.array_runner import ArrayRunner
from internutopia.viewer.env_view import EnvView
from internutopia.viewer.frames import Frame, RobotFacts, ShownScene, ViewRequest
from internutopia.viewer.robot_controls import RobotCommand
from internutopia.viewer.source import CloseCall, FrameCall, FrameReply

_PART = 1 << 22  # bytes of a model in a reply: others wait for the server while it is passed on
_MOST_VIEWERS = 8  # of a session; for one more, the oldest is forgotten


class SessionViews:
    """Views of the envs of a session, by viewer, with their commands to robots."""

    def __init__(self, core: ArrayRunner):
        self._core = core
        self._saved: tuple[bytes, NDArray[np.uint8]] = b'', np.zeros(0, np.uint8)  # the last model that was requested

    def view(
        self,
        viewer: str,
        last: bool,
        env_ids: Sequence[int],
        env: int,
        in_place: bool,
        report: bool,
        cameras: Sequence[Mapping[str, str]],
        robots: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Apply a viewer's commands and return env states; see `viewer_protocol.ViewEnvs` and `SeenEnvs`."""
        if last:
            CloseCall(viewer)(self._core, 0)
            return _seen_envs(FrameReply(Frame(), (), {}))
        view = ViewRequest(
            env_id=env,
            all_envs=in_place,
            cameras=frozenset((each['robot'], each['camera']) for each in cameras),
            joints={(robot['env'], robot['robot']): robot['joints'] for robot in robots if robot['joints']},
            commands={
                (robot['env'], robot['robot']): RobotCommand(tuple(robot['speeds']))
                for robot in robots
                if robot['speeds'] is not None
            },
        )
        try:
            seen = FrameCall(viewer, view, env_ids, report, frozenset())(self._core, 0)
        except NotImplementedError as error:  # of an engine that cannot be shown
            raise invalid(str(error)) from None
        views = [each for each in self._core.runner.watchers if isinstance(each, EnvView)]
        for forgotten in views[:-_MOST_VIEWERS]:
            forgotten.close()
        return _seen_envs(seen)

    def scene(self, digest: str, start: int) -> dict[str, Any]:
        """Return a part of the model that an env runs, as `viewer_protocol.ScenePart`."""
        scene = self._find(bytes.fromhex(digest))
        if scene is None:
            raise ServiceError(409, 'conflict', f'no env runs scene {digest} now')
        if self._saved[0] != scene.digest:
            model = np.zeros(mujoco.mj_sizeModel(scene.model), np.uint8)
            mujoco.mj_saveModel(scene.model, None, model)
            self._saved = scene.digest, model
        model = self._saved[1]
        if start + _PART >= len(model):
            self._saved = b'', model[:0]  # that was the last part
        robots = {
            name: {'root': robot.root, 'qpos': robot.qpos.astype(np.int64)} for name, robot in scene.robots.items()
        }
        return {'size': len(model), 'part': model[start : start + _PART], 'robots': robots}

    def _find(self, digest: bytes) -> ShownScene | None:
        runner = self._core.runner
        world: Any = runner.world  # it can be shown, so it has scenes
        scenes = (world.scene(env_id) for env_id, slot in enumerate(runner.envs) if slot is not None)
        found = next((scene for scene in scenes if scene.digest == digest), None)
        return None if found is None else ShownScene.of(found)


def _seen_envs(seen: FrameReply) -> dict[str, Any]:
    """Return the fields of `viewer_protocol.SeenEnvs`."""
    scenes = list(seen.scenes)
    report = seen.frame.report
    pictures = {} if report is None else report.pictures
    return {
        'env_ids': np.array([env.env_id for env in seen.envs], np.int64),
        'origins': np.array([env.origin for env in seen.envs], np.float64).reshape(-1, 3),
        'scenes': [digest.hex() for digest in scenes],
        'scene_of': np.array([scenes.index(env.scene) for env in seen.envs], np.int64),
        'states': np.concatenate([np.zeros(0), *(env.state for env in seen.envs)]),
        'state_sizes': np.array([len(env.state) for env in seen.envs], np.int64),
        'episode': _episode(seen.frame),
        'figures': None if report is None else plain(report.figures),
        'pictures': [
            {'robot': robot, 'camera': camera, 'rgb': picture} for (robot, camera), picture in pictures.items()
        ],
    }


def _episode(frame: Frame) -> dict[str, Any] | None:
    facts = frame.episode
    if facts is None:
        return None
    robots = [_robot(robot) for robot in facts.robots]
    return {'env': facts.env_id, 'title': facts.title, 'time': frame.time, 'robots': robots}


def _robot(facts: RobotFacts) -> dict[str, Any]:
    speeds = facts.controls.velocity
    return {
        'robot': facts.name,
        'joints': {
            joint: [limit if math.isfinite(limit) else None for limit in limits]
            for joint, limits in facts.joints.items()
        },
        'held': sorted(facts.held),
        'speeds': None if speeds is None else dataclasses.asdict(speeds),
        'cameras': facts.cameras,
    }
