"""Isaac Sim world: the world contract on a stage with one `World`.

The stage stands while envs only start new episodes of what stands in them: their initial states are set. Where an env
gets another scene the stage is built anew as a whole, and the states of all other envs are put back. Isaac Sim steps
everything on its stage: what shall stand still is put back after each step.

Robots, objects and scenes are USD. What Isaac Sim does not provide comes from the host's model of the same scene, or is
an error: see `docs/isaac_sim.md`.
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from weakref import WeakSet

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import SimConfig
from internutopia.engines.base import PhysicsState, SceneHandle, World
from internutopia.engines.isaac.api import IsaacSim
from internutopia.engines.isaac.articulation import IsaacArticulationView
from internutopia.engines.isaac.bodies import IsaacBodyView, kind_of
from internutopia.engines.isaac.cameras import IsaacCameraView
from internutopia.engines.isaac.env_prims import EnvPrims, InitialState, build_stage
from internutopia.engines.isaac.launch import start_isaac_sim
from internutopia.engines.isaac.usd_assets import check_assets, check_scene
from internutopia.engines.views import EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_cache import SCENES
from internutopia.model.semantics import SceneLabels
from internutopia.model.spec import SCENE_PREFIX, SceneSpec
from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.rendering.renderer import EnvSnapshot, RendererPool
from internutopia.util import did_you_mean
from internutopia.util.arrays import ArrayMaker, HostArrays
from internutopia.util.errors import EnvKeyError, EnvValueError

StateView = IsaacArticulationView | IsaacBodyView
ViewState = tuple[StateView, EnvIds, dict[str, NDArray[np.float32]]]

_WHOLE_STEPS = 1e-6  # how far from a whole number the steps of a second may be: text such as '1/240' is exact
_DIVERGED = 'the simulation diverged: its state is not finite any more'


class IsaacWorld(World):
    """`env_num` envs on the stage of the process's Isaac Sim, which is one world's from its first `load` to `close`."""

    _open: ClassVar[WeakSet[IsaacWorld]] = WeakSet()  # the world that has the stage

    def __init__(self, config: SimConfig, env_num: int, env_origins: NDArray[np.float64]):
        self.env_num = env_num
        self.arrays: ArrayMaker = HostArrays()
        self.env_origins = env_origins
        self.dt = float(config.physics_dt)
        self.substeps = config.substeps
        self.times = np.zeros(env_num)
        self.noise_keys = np.zeros(env_num, np.uint64)
        self.version = 0
        self.stage = 0  # number of the stage: handles of Isaac Sim hold as long as it
        self.env_prims: dict[int, EnvPrims] = {}  # what stands in each env, whether it runs or was left
        self.dirty = np.zeros(env_num, bool)  # where something was set since the last step
        self._running = np.zeros(env_num, bool)
        self._config = config
        self.sim: IsaacSim = start_isaac_sim(config, whole_steps(self.dt))
        self._robots: dict[tuple[object, ...], IsaacArticulationView] = {}
        self._bodies: dict[tuple[str, str], IsaacBodyView] = {}
        self._cameras: dict[str, IsaacCameraView] = {}
        self._host: dict[int, tuple[int, mujoco.MjData]] = {}
        self._renderers = RendererPool(config.threads or os.cpu_count() or 1, config.render_quality)

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; NotImplementedError for features that Isaac Sim has no counterpart of."""
        check_assets(scene)
        compiled = SCENES.get(scene, self.dt)
        compiled.check(scene)
        check_scene(scene, compiled)
        return compiled

    @override
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        """Start envs afresh; RuntimeError if another world has the stage."""
        if not scenes:
            return
        self._claim_stage()
        wanted = {env_id: EnvPrims.of(cast(CompiledScene, handle), spec) for env_id, (handle, spec) in scenes.items()}
        if all(self.env_prims.get(env_id) == prims for env_id, prims in wanted.items()):
            self._reset(wanted)
            return
        others = {env_id: prims for env_id, prims in self.running.items() if env_id not in wanted}
        kept = self._states_of(np.array(list(others), np.intp))
        try:
            self._rebuild_stage(others | wanted, kept)
            self._reset(wanted)
        except Exception:  # what Isaac Sim finds in a file may not be what was expected: the others go on
            self.unload(np.array(list(wanted), np.intp))
            self._rebuild_stage(others, kept)
            raise

    def _reset(self, env_prims: Mapping[int, EnvPrims]) -> None:
        """Start episodes in envs that hold the right prims."""
        self.env_prims.update(env_prims)
        self._running[list(env_prims)] = True
        self.times[list(env_prims)] = 0.0
        self.version += 1
        initial: dict[int, InitialState] = {}  # by scene: many envs may start in the very same one
        views: dict[StateView, tuple[list[int], list[InitialState]]] = {}
        for env_id, prims in env_prims.items():
            if id(prims.spec) not in initial:
                initial[id(prims.spec)] = InitialState.of(prims)
            for view in self._views_of(env_id):
                env_ids, own = views.setdefault(view, ([], []))
                env_ids.append(env_id)
                own.append(initial[id(prims.spec)])
        for view, (env_ids, own) in views.items():
            view.reset(np.array(env_ids, np.intp), own)
        self.dirty[list(env_prims)] = True
        for camera in self._cameras.values():
            camera.reset(list(env_prims))

    @override
    def unload(self, env_ids: EnvIds) -> None:
        """Leave envs empty; their prims stay on the stage, in case they are loaded again."""
        self._running[env_ids] = self.dirty[env_ids] = False
        self.version += 1

    @override
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        still = np.setdiff1d(np.flatnonzero(self._running), env_ids)
        kept = self._states_of(still)
        for _ in range(self.substeps):
            for view in self._robots.values():
                view.joints.write_efforts()
            self.sim.step()
        if self.frame_due and not (self._config.headless and not self._config.webrtc):
            self.sim.render()  # a window or stream shows it
        self.version += 1
        self.times[env_ids] += self.step_dt
        self.dirty[:] = False
        for view, own, state in kept:
            view.set_state(own, state)
        fine = np.ones(self.env_num, bool)
        for view in self._robots.values():
            fine &= view.finite()
        return {env_id: _DIVERGED for env_id in env_ids.tolist() if not fine[env_id]}

    @override
    def get_state(self, env_id: int) -> PhysicsState:
        """Return poses, velocities, joints, targets, gains and masses; contacts are found again."""
        arrays: dict[str, NDArray[Any]] = {'time': self.times[[env_id]]}
        for view, _, state in self._states_of(np.array([env_id], np.intp)):
            arrays |= {f'{_state_key(view)}/{name}': array for name, array in state.items()}
        return PhysicsState(self.compiled(env_id).digest, arrays)

    @override
    def check_compatible(self, env_id: int, state: PhysicsState) -> str | None:
        own = self.get_state(env_id)
        if state.model != own.model:
            return 'its models are not those that the state was taken from: an asset file is another one'
        if wrong := state.misfits(own.arrays):
            return f'Isaac Sim lays out states in another way than what saved it: {", ".join(wrong)}'
        return None

    @override
    def set_state(self, env_id: int, state: PhysicsState) -> None:
        """Put an env into a state; what contacts keep of the steps before is lost."""
        self.times[env_id] = state.arrays['time'][0]
        for view in self._views_of(env_id):
            prefix = f'{_state_key(view)}/'
            own = {n.removeprefix(prefix): array for n, array in state.arrays.items() if n.startswith(prefix)}
            view.set_state(np.array([env_id], np.intp), own)
        self.version += 1

    @override
    def articulation(self, name: str, env_id: int) -> IsaacArticulationView:
        """Return a robot; KeyError with close matches, NotImplementedError for joints of the scene."""
        if name.startswith(SCENE_PREFIX):
            raise NotImplementedError(f'env {env_id}, {name!r}: joints of scenes are not read or moved on Isaac Sim')
        prims = self._prims_of(env_id)
        robots = prims.compiled.robots
        if name not in robots:
            raise EnvKeyError(env_id, f'env {env_id} has no robot {name!r}; {did_you_mean(name, robots)}')
        key = name, robots[name].signature
        if key not in self._robots:
            self._robots[key] = IsaacArticulationView(self, name, prims)
        return self._robots[key]

    @override
    def body(self, name: str, env_id: int) -> IsaacBodyView:
        """Return a body; KeyError with close matches."""
        prims = self._prims_of(env_id)
        if name not in prims.compiled.bodies:
            raise EnvKeyError(
                env_id, f'env {env_id} has no movable body {name!r}; {did_you_mean(name, prims.compiled.bodies)}'
            )
        key = name, kind_of(prims, name)
        if key not in self._bodies:
            self._bodies[key] = IsaacBodyView(self, *key)
        return self._bodies[key]

    @override
    def body_names(self, env_id: int) -> tuple[str, ...]:
        return tuple(self._prims_of(env_id).compiled.bodies)

    @override
    def camera(self, robot: str | None, path: str, env_id: int) -> IsaacCameraView:
        prims = self._prims_of(env_id)
        name = prims.compiled.camera_name(robot, path)
        if name not in self._cameras:
            self._cameras[name] = IsaacCameraView(self, name, robot, prims.adds_camera(robot, name))
        return self._cameras[name]

    @override
    def render(self, requests: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        """Render with OpenGL on the host, from the host's models in the states of Isaac Sim."""
        self._renderers.render(requests, quality, self._snapshot)

    @override
    def labels(self, env_id: int) -> SceneLabels:
        return self._prims_of(env_id).compiled.labels

    @override
    def close(self) -> None:
        """Release the stage. Isaac Sim's app keeps running for the next Env; it ends with the process."""
        if self in self._open:
            self._open.discard(self)
            self.unload(np.arange(self.env_num))
            self.env_prims.clear()
            self.sim.close()
        self._renderers.close()

    @property
    def running(self) -> dict[int, EnvPrims]:
        """Prims of the envs that run a scene."""
        return {env_id: prims for env_id, prims in self.env_prims.items() if self._running[env_id]}

    def compiled(self, env_id: int) -> CompiledScene:
        """Return the host's model of the scene that an env runs. ValueError if it runs none."""
        return self._prims_of(env_id).compiled

    def host_data(self, env_id: int) -> mujoco.MjData:
        """Return the host's model of an env in the env's state, with poses and velocities of all bodies.

        Movable parts of the scene that hang on joints are where they are at joint positions of zero.
        """
        version, data = self._host.get(env_id, (-1, None))
        if data is not None and version == self.version:
            return data
        compiled = self.compiled(env_id)
        data = mujoco.MjData(compiled.model)
        for name, layout in compiled.robots.items():
            view = self.articulation(name, env_id)
            data.qpos[layout.qpos] = view.get_joint_positions()[env_id]
            data.qvel[layout.dof] = view.get_joint_velocities()[env_id]
            _set_body(data, layout.root, view.get_root_poses(), view.get_root_velocities(), env_id)
        for name, layout in compiled.bodies.items():
            body = self.body(name, env_id)
            _set_body(data, layout, body.get_poses(), body.get_velocities(), env_id)
        mujoco.mj_kinematics(compiled.model, data)
        mujoco.mj_comPos(compiled.model, data)
        mujoco.mj_comVel(compiled.model, data)
        self._host[env_id] = self.version, data
        return data

    def _snapshot(self, env_id: int) -> EnvSnapshot:
        compiled, kind = self.compiled(env_id), mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.zeros(mujoco.mj_stateSize(compiled.model, kind))
        mujoco.mj_getState(compiled.model, self.host_data(env_id), state, kind)
        return compiled.model, state, compiled.labels.geom_labels

    def _claim_stage(self) -> None:
        if self._open - {self}:
            gc.collect()  # a world without references is closed, too
        if self._open - {self}:
            raise RuntimeError("backend 'isaac_sim' has one stage per process: close the other Env first")
        self._open.add(self)

    def _prims_of(self, env_id: int) -> EnvPrims:
        if not self._running[env_id]:
            raise EnvValueError(env_id, f'env {env_id} runs no scene: reset it first')
        return self.env_prims[env_id]

    def _views_of(self, env_id: int) -> list[StateView]:
        compiled = self.compiled(env_id)
        return [
            *(self.articulation(name, env_id) for name in compiled.robots),
            *(self.body(name, env_id) for name in compiled.bodies),
        ]

    def _states_of(self, env_ids: EnvIds) -> list[ViewState]:
        """Return the states of some envs, by view."""
        views: dict[StateView, list[int]] = {}
        for env_id in env_ids.tolist():
            for view in self._views_of(env_id):
                views.setdefault(view, []).append(env_id)
        return [(view, own := np.array(ids, np.intp), view.get_state(own)) for view, ids in views.items()]

    def _rebuild_stage(self, env_prims: dict[int, EnvPrims], kept: Sequence[ViewState]) -> None:
        """Build the stage anew; envs whose state was kept go on where they were."""
        self.env_prims = env_prims
        self._running[list(env_prims)] = True
        self.stage += 1
        self.version += 1
        self.sim.new_stage()
        build_stage(self.sim, self.env_prims, self.env_origins)
        for env_id in env_prims:
            for name in self.compiled(env_id).robots:
                self.articulation(name, env_id).links.prepare_contacts()
        self.sim.start()
        for view in self._robots.values():
            view.on_new_stage()
        for view in self._bodies.values():
            view.masses.drop()
        for view, own, state in kept:
            view.set_state(own, state)
        self.version += 1


def whole_steps(dt: float) -> float:
    """Return a step length that Isaac Sim, which counts `int(1 / dt)` steps per second, does not round down.

    ValueError if a second is not a whole number of steps.
    """
    steps = round(1.0 / dt)
    if steps < 1 or abs(1.0 / dt - steps) > _WHOLE_STEPS * steps:
        raise ValueError(f"SimConfig.physics_dt={dt}: backend 'isaac_sim' makes a whole number of steps per second")
    exact = 1.0 / steps
    while int(1.0 / exact) < steps:
        exact = math.nextafter(exact, 0.0)
    return exact


def _set_body(data: mujoco.MjData, layout: Any, poses: Any, velocities: Any, env_id: int) -> None:
    """Write the pose of a free or mocap body, and the velocity of a free one."""
    (position, orientation), (linear, angular) = ((a[env_id], b[env_id]) for a, b in (poses, velocities))
    if layout.mocap >= 0:
        data.mocap_pos[layout.mocap], data.mocap_quat[layout.mocap] = position, orientation
    elif layout.qpos >= 0:
        data.qpos[layout.qpos : layout.qpos + 7] = [*position, *orientation]
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, orientation.astype(np.float64))
        data.qvel[layout.dof : layout.dof + 6] = [*linear, *(rotation.reshape(3, 3).T @ angular)]


def _state_key(view: StateView) -> str:
    return f'{"robots" if isinstance(view, IsaacArticulationView) else "bodies"}/{view.name}'
