"""The state of one robot in all envs, as terms see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.util.rotations import quat_rotate_inverse
from internutopia.core.world.base import World

Array = NDArray[np.float32]


class RobotState:
    """Batched arrays `(n, ...)`, row = env id, float32; rows of envs that do not run are meaningless.

    What is computed is computed once per step and read-only by convention. Suffix `_b`: base frame; none: env frame.

    Attributes:
        robot: the batched robot.
        world: the physics world.
        rng: source of everything random.
        step_dt: length of an env step [s].
        steps: steps made in the episode, int `(n,)`.
        actions: the actions of this step `(n, k)`, as the learner gave them.
        last_actions: those of the step before, zero at the start of an episode.
        commands: current commands by name, `(n, k)`.
        levels: progress of the curriculum, 0 to 1, `(n,)`.
        action_offset: what a scaled action is added to `(k,)`; zeros if actions are taken as they are.
    """

    def __init__(self, world: World, step_dt: float, rng: np.random.Generator, action_size: int):
        n = world.env_num
        self.world = world
        self.rng = rng
        self.step_dt = step_dt
        self.steps: NDArray[np.intp] = np.zeros(n, np.intp)
        self.actions: Array = np.zeros((n, action_size), np.float32)
        self.last_actions: Array = np.zeros((n, action_size), np.float32)
        self.commands: dict[str, Array] = {}
        self.levels: Array = np.zeros(n, np.float32)
        self.action_offset: Array = np.zeros(action_size, np.float32)
        self.robot: BaseRobot
        self._memory: dict[str, Any] = {}

    @property
    def env_num(self) -> int:
        """Number of envs, n."""
        return self.world.env_num

    @property
    def articulation(self) -> IArticulation:
        """Joints and root of the robot in all envs."""
        return self.robot.articulation

    @property
    def home(self) -> Array:
        """Initial joint positions `(dof,)` of the robot's model [rad or m]."""
        return self._once('home', lambda: _home(self.robot))

    @property
    def joint_positions(self) -> Array:
        """`(n, dof)` [rad or m]."""
        return self.articulation.get_joint_positions()

    @property
    def joint_velocities(self) -> Array:
        """`(n, dof)` [rad/s or m/s]."""
        return self.articulation.get_joint_velocities()

    @property
    def joint_efforts(self) -> Array:
        """Forces of the actuators in the last substep `(n, dof)` [N·m or N]."""
        return self.articulation.get_joint_efforts()

    @property
    def joint_ranges(self) -> NDArray[np.float64]:
        """Joint limits `(dof, 2)`, infinite where there are none."""
        return self.articulation.view.joint_ranges

    @property
    def base_position(self) -> Array:
        """`(n, 3)` [m]."""
        return self.robot.get_pose()[0]

    @property
    def base_orientation(self) -> Array:
        """`(n, 4)`, (w, x, y, z)."""
        return self.robot.get_pose()[1]

    @property
    def base_linear_velocity(self) -> Array:
        """`(n, 3)` [m/s]."""
        return self._base.get_linear_velocity()

    @property
    def base_angular_velocity(self) -> Array:
        """`(n, 3)` [rad/s]."""
        return self._base.get_angular_velocity()

    @property
    def base_linear_velocity_b(self) -> Array:
        """`(n, 3)` [m/s]."""
        return self._once('v_b', lambda: quat_rotate_inverse(self.base_orientation, self.base_linear_velocity))

    @property
    def base_angular_velocity_b(self) -> Array:
        """`(n, 3)` [rad/s]."""
        return self._once('w_b', lambda: quat_rotate_inverse(self.base_orientation, self.base_angular_velocity))

    @property
    def projected_gravity(self) -> Array:
        """Direction of gravity in the base frame `(n, 3)`; (0, 0, -1) when upright."""
        down = np.array([0.0, 0.0, -1.0], np.float32)
        return self._once('gravity', lambda: quat_rotate_inverse(self.base_orientation, down))

    def command(self, name: str) -> Array:
        """The current commands of that name `(n, k)`. KeyError naming those there are."""
        if name not in self.commands:
            raise KeyError(f'there is no command {name!r}; commands: {", ".join(self.commands) or "none"}')
        return self.commands[name]

    def changed(self) -> None:
        """Forget what was computed: time went on, or somebody moved something."""
        home = self._memory.get('home')
        self._memory.clear()
        if home is not None:
            self._memory['home'] = home

    def bind(self, robot: BaseRobot) -> None:
        """Show another robot object: the envs were reset."""
        self.robot = robot
        self._memory.clear()

    @property
    def _base(self) -> Any:
        return self.robot.get_robot_base() if self.robot.base_link else self.articulation

    def _once(self, name: str, compute: Callable[[], Array]) -> Array:
        if name not in self._memory:
            self._memory[name] = compute()
        return self._memory[name]


def _home(robot: BaseRobot) -> Array:
    model = type(robot).model(robot.config)
    positions: Mapping[str, float] = model.joint_positions
    return np.array([positions.get(name, 0.0) for name in robot.articulation.dof_names], np.float32)
