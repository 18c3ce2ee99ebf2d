"""Setup of an evaluation of navigation: the robot, how it moves, and when the policy gets images and is called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from internutopia.config import RobotCfg, SimConfig
from internutopia.evaluation.chunk_policy import Client
from internutopia_extension.configs.controllers import DiscreteControllerCfg
from internutopia_extension.navigation.nav_mapping import NavMappingCfg
from internutopia_extension.navigation.nav_policy import NavPolicy
from internutopia_extension.navigation.robots import Moves, navigation_robot, simulation


@dataclass(frozen=True)
class NavigationSetup:
    """Robot, simulation and limits in which a policy navigates.

    Attributes:
        name: of the robot, one of `ROBOTS`.
        given_moves: see `navigation_robot`; None: `'flash'` for discrete actions.
        allow_sliding: see `navigation_robot`.
        mapping: of the policy; None: it sees no images, and has discrete actions.
        horizon: number of actions of an answer that are carried out; None: all.
        threads: of the physics; None: one per core.
    """

    name: str
    given_moves: Moves | None = None
    allow_sliding: bool | None = None
    mapping: NavMappingCfg | None = None
    horizon: int | None = None
    threads: int | None = None

    @property
    def is_discrete(self) -> bool:
        """True if the policy has discrete actions."""
        return self.mapping is None or self.mapping.action.is_discrete

    @cached_property
    def moves(self) -> Moves:
        """The robot is teleported, or walks or drives. ValueError if it is to be teleported along waypoints."""
        if not self.is_discrete and self.given_moves == 'flash':
            assert self.mapping is not None
            raise ValueError(f'--moves flash needs discrete actions: the mapping has {self.mapping.action.kind}')
        return self.given_moves or ('flash' if self.is_discrete else 'discrete')

    @cached_property
    def simulator(self) -> SimConfig:
        """Simulation settings."""
        return simulation(self.moves, self.threads)

    @cached_property
    def period(self) -> int:
        """Number of steps that a velocity is held or waypoints are followed, at least 1."""
        assert self.mapping is not None
        step_dt = float(self.simulator.physics_dt) * self.simulator.substeps
        return max(1, round(self.mapping.action.period / step_dt))

    @cached_property
    def robot(self) -> RobotCfg:
        """The robot, with cameras that capture images when the policy needs them. ValueError for an unknown name."""
        every: int | None = None
        if self.mapping is not None:
            is_regular = self.mapping.observation.history == 1 and self.mapping.action.kind == 'discrete'
            unseen = is_regular and self.horizon or 1  # actions until it sees again
            every = self.period if not self.is_discrete else unseen if self.moves == 'flash' else None
        return navigation_robot(self.name, self.moves, self.allow_sliding, self.mapping, every)

    @property
    def slides(self) -> bool:
        """True if the robot slides along walls."""
        steps: Any = next(each for each in self.robot.controllers or [] if isinstance(each, DiscreteControllerCfg))
        return steps.allow_sliding

    def policy(self, client: Client) -> NavPolicy:
        """Return the policy that a client reaches."""
        assert self.mapping is not None
        return NavPolicy(client, self.mapping, self.horizon, 1 if self.is_discrete else self.period)

    def limits(self, max_actions: int) -> dict[str, int]:
        """Return the fields of a task that end it after so many actions, or periods."""
        if self.is_discrete:
            return {'max_actions': max_actions}
        return {'max_episode_steps': max_actions * self.period}
