"""State of one robot in all envs, as terms see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.task import TaskCfg
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.engines.base import World
from internutopia.engines.env_selection import EnvSelection, select_envs
from internutopia.engines.views import ArticulationView, BodyView
from internutopia.model.kinematics import KinematicChain
from internutopia.model.spec import OBJECTS_PREFIX
from internutopia.rl.elevation import ElevationMap, GroundBelow
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_rotate_inverse, squared_length

Array = NDArray[np.float32]
CONTACT_FORCE = 1.0  # N; less counts as no contact


class RobotState:
    """Batched arrays `(n, ...)`, row = env id, float32; rows of envs that do not run are meaningless.

    What is computed is computed once per step and read-only by convention. Suffix `_b`: base frame; none: env frame.

    Attributes:
        robot: the robot.
        articulation: its joints and root in all envs.
        world: the physics world.
        env_num: number of envs, n.
        arrays: makes arrays of the kind that all of these are: of numpy, or torch tensors on the device of the engine.
        xp: functions for such arrays, under numpy's names.
        rng: source of everything random, with a row for each env: `EnvRandom` or `DeviceRandom`.
        step_dt: length of an env step [s].
        tasks: the tasks that envs run.
        task_ids: which of them each env runs, int `(n,)`.
        steps: steps made in the episode, int `(n,)`.
        start_positions: of the base `(n, 3)` [m], when the episode started.
        actions: the actions of this step `(n, k)`, as the learner gave them.
        last_actions: those of the step before, zero at the start of an episode.
        levels: progress of the curriculum, 0 to 1, `(n,)`.
        reward_sums: what reward terms that a curriculum reads have given in the episode, by name: value, without
            weight, times seconds, `(n,)`.
        action_offset: what a scaled action is added to `(k,)`; zeros if actions are not scaled.
        action_scale: what it is scaled by `(k,)`; ones then.
        elevation: heights of the ground, None where it is level.
        episode_values: what terms remember of an episode, see `episode_value`.
    """

    def __init__(self, world: World, step_dt: float, rng: Any, action_size: int, tasks: Sequence[TaskCfg] = ()):
        n, arrays = world.env_num, world.arrays
        self.tasks = tasks
        self.task_ids: NDArray[np.intp] = arrays.zeros(n, 'int64')
        self.start_positions: Array = arrays.zeros((n, 3))
        self.world = world
        self.env_num = n
        self.arrays = arrays
        self.xp: Any = arrays.xp
        self.rng = rng
        self.step_dt = step_dt
        self.steps: NDArray[np.intp] = arrays.zeros(n, 'int64')
        self.actions: Array = arrays.zeros((n, action_size))
        self.last_actions: Array = arrays.zeros((n, action_size))
        self._commands: dict[str, Array] = {}
        self.levels: Array = arrays.zeros(n)
        self.reward_sums: dict[str, Array] = {}
        self.action_offset: Array = arrays.zeros(action_size)
        self.action_scale: Array = arrays.zeros(action_size) + 1.0
        self.elevation: ElevationMap | GroundBelow | None = None
        self.robot: BaseRobot
        self.episode_values: dict[str, Array] = {}
        self._memory: dict[Any, Any] = {}  # until time continues
        self._commanded: dict[Any, Any] = {}  # until commands may change, too
        self._constants: dict[Any, Any] = {}  # until another robot comes
        self._lasting: dict[Any, Any] = {}
        self._bound: tuple[Any, ...] = ()

    @cached_property
    def home(self) -> Array:
        """Initial joint positions `(dof,)` of the robot's model [rad or m], or what was bound instead."""
        positions = {**type(self.robot).model(self.robot.config).joint_positions, **self._own_home}
        return self.arrays.asarray([positions.get(name, 0.0) for name in self.articulation.dof_names], 'float32')

    @property
    def joint_positions(self) -> Array:
        """`(n, dof)` [rad or m]."""
        return self._view.get_joint_positions()

    @cached_property
    def joint_offsets(self) -> Array:
        """Joint positions relative to home `(n, dof)` [rad or m]."""
        return self.joint_positions - self.home

    @property
    def joint_velocities(self) -> Array:
        """`(n, dof)` [rad/s or m/s]."""
        return self._view.get_joint_velocities()

    @property
    def joint_efforts(self) -> Array:
        """Forces of the actuators in the last substep `(n, dof)` [N·m or N]."""
        return self._view.get_joint_efforts()

    @cached_property
    def joint_ranges(self) -> NDArray[np.float64]:
        """Joint limits `(dof, 2)`, infinite where there are none."""
        return self.arrays.asarray(self._view.joint_ranges)

    @cached_property
    def joint_dynamics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Armature [kg·m² or kg] and damping [N·m·s/rad or N·s/m] of the joints in the model, `(dof,)` each."""
        armature, damping = (self.arrays.asarray(each, self.arrays.double) for each in self._view.joint_dynamics)
        return armature, damping

    @property
    def base_position(self) -> Array:
        """`(n, 3)` [m]."""
        return self._base_poses()[0]

    @property
    def base_orientation(self) -> Array:
        """`(n, 4)`, (w, x, y, z)."""
        return self._base_poses()[1]

    @property
    def base_linear_velocity(self) -> Array:
        """`(n, 3)` [m/s]."""
        return self._base_velocities()[0]

    @property
    def base_angular_velocity(self) -> Array:
        """`(n, 3)` [rad/s]."""
        return self._base_velocities()[1]

    @cached_property
    def base_linear_velocity_b(self) -> Array:
        """`(n, 3)` [m/s]."""
        return self._base_velocities_b[0]

    @cached_property
    def base_angular_velocity_b(self) -> Array:
        """`(n, 3)` [rad/s]."""
        return self._base_velocities_b[1]

    @cached_property
    def projected_gravity(self) -> Array:
        """Direction of gravity in the base frame `(n, 3)`; (0, 0, -1) when upright."""
        return quat_rotate_inverse(self.base_orientation, self.constant((0.0, 0.0, -1.0)))

    @property
    def feet_positions(self) -> Array:
        """Origins of the robot's `feet` links `(n, k, 3)` [m]."""
        return self._view.get_link_poses(self._feet)[0]

    @property
    def feet_orientations(self) -> Array:
        """Of those links `(n, k, 4)`, (w, x, y, z)."""
        return self._view.get_link_poses(self._feet)[1]

    @property
    def feet_velocities(self) -> Array:
        """Velocities of those origins `(n, k, 3)` [m/s]."""
        return self._view.get_link_velocities(self._feet)[0]

    @property
    def feet_forces(self) -> Array:
        """Net contact forces on the robot's `feet` links in the last substep `(n, k, 3)` [N]."""
        forces, feet = self._view.get_contact_forces(), len(self.robot.feet)
        return forces if len(self._view.contact_links) == feet else forces[:, :feet]

    @cached_property
    def feet_contacts(self) -> NDArray[np.bool_]:
        """Which of the robot's `feet` touch something `(n, k)`."""
        return squared_length(self.feet_forces) > CONTACT_FORCE**2

    @property
    def other_links(self) -> tuple[str, ...]:
        """Links besides the feet. ValueError if their contacts are not measured: the robot has no `LinkContacts`."""
        links = self._view.contact_links[len(self.robot.feet) :]
        if not links:
            raise ValueError(
                f'robot {self.robot.name!r} has no sensor of type LinkContacts: only contacts of its feet are measured'
            )
        return links

    @cached_property
    def other_contacts(self) -> NDArray[np.bool_]:
        """Which of the `other_links` touch something, links of the robot included `(n, k)`."""
        forces = self._view.get_contact_forces()[:, -len(self.other_links) :]
        return squared_length(forces) > CONTACT_FORCE**2

    @cached_property
    def feet_ground(self) -> Array:
        """Heights of the ground under the robot's `feet` `(n, k)` [m]; 0 without an `ElevationCfg`."""
        return self.ground_height(self.feet_positions)

    @cached_property
    def feet_clearances(self) -> Array:
        """Heights of those origins above the ground `(n, k)` [m]."""
        heights = self.feet_positions[..., 2]
        return heights if self.elevation is None else heights - self.feet_ground

    @cached_property
    def base_clearance(self) -> Array:
        """Height of the base above the ground under the robot's `feet`, on average `(n,)` [m].

        Without an `ElevationCfg`, above height 0.
        """
        heights = self.base_position[:, 2]
        return heights if self.elevation is None else heights - self.xp.mean(self.feet_ground, axis=-1)

    def ground_height(self, places: Array) -> Array:
        """Return heights `(n, ...)` [m] of the ground at places `(n, ..., 2 or 3)` [m]; 0 without an `ElevationCfg`."""
        if self.elevation is None:
            return self.xp.zeros_like(places[..., 0])
        return self.elevation.heights(places)

    def link_position(self, link: str) -> Array:
        """Return the position of a link's origin `(n, 3)` [m]. KeyError with close matches."""
        return self._view.body(link).get_poses()[0]

    def link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        """Return positions `(n, k, 3)` [m] and orientations `(n, k, 4)` of links. KeyError with close matches."""
        return self._view.get_link_poses(links)

    def link_clearances(self, links: Sequence[str]) -> Array:
        """Return the heights of links' origins above the ground `(n, k)` [m]. KeyError with close matches."""
        places = self.link_poses(links)[0]
        return places[..., 2] - self.ground_height(places)

    def chain(self, link: str) -> KinematicChain:
        """Return the joints between the root and a link. KeyError with close matches."""
        return self._view.chain('', link, self._learner(f'link {link!r}'))

    def other_robot(self, name: str) -> ArticulationView:
        """Return another robot of the env, by its name, in all envs. KeyError with close matches."""
        return self.world.articulation(name, self._learner(f'robot {name!r}'))

    def scene_object(self, name: str) -> BodyView:
        """Return an object, a movable scene body, or `<object>/<part>` that moves on a joint. KeyError."""
        env_id = self._learner(f'object {name!r}')
        owner, _, part = name.partition('/')
        if part and owner in self.world.body_names(env_id):
            return self.jointed_object(owner).body(part)
        return self.world.body(name, env_id)

    def jointed_object(self, name: str) -> ArticulationView:
        """Return the joints and parts of an object in all envs. KeyError if it has no joints."""
        return self.world.articulation(f'{OBJECTS_PREFIX}{name}', self._learner(f'object {name!r}'))

    def object_joint(self, name: str, joint: str) -> Array:
        """Return the position of a joint of an object `(n,)` [rad or m]. KeyError or ValueError with close matches."""
        view = self.jointed_object(name)
        if joint not in view.dof_names:
            raise ValueError(f'object {name!r} has no joint {joint!r}; {did_you_mean(joint, view.dof_names)}')
        return view.get_joint_positions()[:, view.dof_names.index(joint)]

    def object_positions(self, names: Sequence[str]) -> Array:
        """Return the positions of objects `(n, k, 3)` [m]."""
        return self.once(
            f'objects {names}',
            lambda: self.xp.stack([self.scene_object(name).get_poses()[0] for name in names], axis=1),
        )

    def dof_indices(self, joints: Sequence[str]) -> NDArray[np.intp]:
        """Return the columns of the joint arrays that belong to joints. KeyError with close matches."""
        key = tuple(joints)
        if key not in self._constants:
            columns = [self.articulation.get_dof_index(name) for name in joints]
            self._constants[key] = self.arrays.asarray(columns, 'int64')
        return self._constants[key]

    def constant(self, values: Any, dtype: str = 'float32') -> Array:
        """Return numbers, a tuple of them or tuples of tuples as an array, uploaded to a device once."""
        key = 'constant', values, dtype
        if key not in self._constants:
            self._constants[key] = self.arrays.asarray(values, dtype)
        return self._constants[key]

    def command(self, name: str) -> Array:
        """Return the current commands of that name `(n, k)`, read-only. KeyError with close matches."""
        if name not in self._commands:
            raise KeyError(f'there is no command {name!r}; {did_you_mean(name, self._commands)}')
        return self._commands[name]

    @property
    def commands(self) -> dict[str, Array]:
        """Current commands by name, `(n, k)`, to change in place.

        What was computed from commands is discarded: read this property again for each change.
        """
        self._commanded.clear()
        return self._commands

    def select(self, mask: NDArray[np.bool_]) -> EnvSelection:
        """Return the envs of a mask `(n,)`, of the kind that all of these arrays are."""
        return select_envs(self.world, mask)

    def changed(self) -> None:
        """Discard what was computed: time went on, or something was moved."""
        values = self.__dict__
        for name in _OF_A_STEP:
            values.pop(name, None)
        self._memory.clear()
        self._commanded.clear()

    def bind(
        self,
        robot: BaseRobot,
        env_id: int | None = None,
        home: Mapping[str, float] | None = None,
        base_link: str | None = None,
    ) -> None:
        """Take another robot object: the envs were reset. One env's own object stands for all that are like it.

        Args:
            robot: the robot.
            env_id: an env that has the objects which terms need.
            home: positions by joint [rad or m] that count as home, in place of those of the robot's model.
            base_link: link that is the base; None means that of the robot's class, or else the root.
        """
        self._env_id = env_id
        bound = robot, home, base_link
        if bound != self._bound:
            self._own_home, self._bound = home or {}, bound
            self._attach(robot, robot.articulation.in_all_envs(), base_link or robot.base_link)
        self.changed()

    def _attach(self, robot: BaseRobot, articulation: IArticulation, base_link: str | None) -> None:
        self.robot, self.articulation, self.base_link = robot, articulation, base_link
        self._view = view = articulation.view
        if base_link:
            base = view.body(base_link)
            self._base_poses, self._base_velocities = base.get_poses, base.get_velocities
        else:
            self._base_poses, self._base_velocities = view.get_root_poses, view.get_root_velocities
        self._constants.clear()
        for name in _OF_A_ROBOT:
            self.__dict__.pop(name, None)

    @property
    def _feet(self) -> Sequence[str]:
        if not self.robot.feet:
            raise ValueError(f'robot {self.robot.name!r}: its class names no feet')
        return self.robot.feet

    def _learner(self, wanted: str) -> int:
        """Return the env that was bound."""
        if self._env_id is None:
            raise RuntimeError(f'{wanted}: the scene and the model are only available to learners')
        return self._env_id

    @cached_property
    def _base_velocities_b(self) -> Array:
        # linear and angular at once: on small batches numpy takes no longer for two than for one
        return quat_rotate_inverse(self.base_orientation, self.xp.stack(self._base_velocities()))

    def once(self, name: Any, compute: Callable[[], Any], commanded: bool = False) -> Any:
        """Return the result of `compute`, kept until time continues: computed by the first caller that names it so.

        What follows from a command, too, is `commanded`, and holds until `commands` are read to change them.
        """
        memory = self._commanded if commanded else self._memory
        if name not in memory:
            memory[name] = compute()
        return memory[name]

    def lasting(self, name: Any, compute: Callable[[], Any]) -> Any:
        """Return the result of `compute`, which holds as long as there are these envs."""
        if name not in self._lasting:
            self._lasting[name] = compute()
        return self._lasting[name]

    def episode_value(self, name: str) -> Array:
        """Return what terms remember of an episode under this name, `(n,)` to write to: 0 when one starts."""
        if name not in self.episode_values:
            self.episode_values[name] = self.arrays.zeros(self.env_num)
        return self.episode_values[name]


_OF_A_ROBOT = 'home', 'joint_ranges', 'joint_dynamics'
_OF_A_STEP = tuple(
    name for name, value in vars(RobotState).items() if isinstance(value, cached_property) and name not in _OF_A_ROBOT
)
