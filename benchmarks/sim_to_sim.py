"""Sim to sim: a shipped walking policy on the maker's own model of its robot, in bare MuJoCo.

    python benchmarks/sim_to_sim.py h1 path/to/unitree_h1/h1.xml
    python benchmarks/sim_to_sim.py g1 menagerie:unitree_g1

Masses, inertias, collision geoms, friction, armature, damping and force limits are those of the file; the gains of the
drives are those that the policy was trained with, and so are commands and pushes those of `internutopia evaluate`:
episodes of 20 s, a new command every 5 s, a push of 0.5 m/s every 4 s. Nothing of InternUtopia's engine takes part:
the observation is computed here, term by term.
"""

from __future__ import annotations

import argparse
import math

import mujoco
import numpy as np
from rich.progress import track

from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.policy import Policy, load_policy
from internutopia.util import did_you_mean
from internutopia_extension.learning_tasks.walkers import WALKERS, Walker

SECONDS, COMMAND_TIME, PUSH_TIME, PUSH = 20.0, 5.0, 4.0, 0.5  # s, s, s, m/s
TIMESTEP = 1 / 480  # s, about


class Walk:
    """One robot of a model that someone else has made, walking by a policy."""

    def __init__(self, walker: Walker, policy: Policy, file: str):
        self.policy, self.metadata = policy, policy.metadata
        self.substeps = round(self.metadata.step_dt / TIMESTEP)
        self.model = _model(walker, file, self.metadata.step_dt / self.substeps)
        self.data = mujoco.MjData(self.model)
        driven = [self.model.joint(name) for name in self.metadata.joint_names]
        self.qpos = np.array([joint.qposadr[0] for joint in driven])
        self.dofs = np.array([joint.dofadr[0] for joint in driven])
        self.controls = np.array([self.model.actuator(name).id for name in self.metadata.joint_names])
        self.base = self.model.body(walker.walking and type_of(walker).base_link).id
        self.floor = int(np.flatnonzero(self.model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)[0])
        self.walker = walker

    def start(self, yaw: float) -> None:
        """Stand at home."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = 0.0, 0.0, self.walker.root_height
        self.data.qpos[3:7] = math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)
        self.data.qpos[self.qpos] = self.metadata.offset
        for joint, angle in type_of(self.walker).home.items():
            self.data.qpos[self.model.joint(joint).qposadr[0]] = angle
            self.data.ctrl[self.model.actuator(joint).id] = angle
        mujoco.mj_forward(self.model, self.data)
        # on the ground: its soles may be elsewhere than those of our model
        feet = _feet(self.model, self.walker)
        self.data.qpos[2] -= min(mujoco.mj_geomDistance(self.model, self.data, self.floor, i, 9.0, None) for i in feet)
        mujoco.mj_forward(self.model, self.data)
        self.action = np.zeros(len(self.qpos))
        self.steps = 0

    def velocity(self) -> np.ndarray:
        """Forward, lateral [m/s] and yaw velocity [rad/s] of the base, in its frame."""
        found = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, self.base, found, 1)
        self.angular, linear = found[:3], found[3:]
        return np.array([linear[0], linear[1], self.angular[2]])

    def step(self, command: np.ndarray) -> None:
        """One action of the policy."""
        self.velocity()
        gravity = self.data.xmat[self.base].reshape(3, 3).T @ [0.0, 0.0, -1.0]
        phase = 2.0 * math.pi * self.steps * self.metadata.step_dt
        values = {
            'base_angular_velocity': lambda params: self.angular,
            'projected_gravity': lambda params: gravity,
            'command': lambda params: command,
            'joint_positions': lambda params: self.data.qpos[self.qpos] - self.metadata.offset,
            'joint_velocities': lambda params: self.data.qvel[self.dofs],
            'last_action': lambda params: self.action,
            'phase': lambda params: [math.cos(phase / params['period']), math.sin(phase / params['period'])],
        }
        terms = [np.asarray(values[cfg.term](cfg.params)) * cfg.scale for cfg in self.metadata.observations]
        self.action = self.policy(np.concatenate(terms)[None].astype(np.float32))[0]
        self.data.ctrl[self.controls] = self.metadata.offset + np.array(self.metadata.scale) * self.action
        mujoco.mj_step(self.model, self.data, self.substeps)
        self.steps += 1

    def fallen(self) -> bool:
        """Return True if the base is too low or leans too far, as where the policy was trained."""
        upright = self.data.xmat[self.base, 8] > math.cos(0.9)
        return not upright or self.data.xpos[self.base, 2] < 0.6 * self.walker.base_height


def type_of(walker: Walker):
    """The robot's class."""
    from internutopia.core.robot.robot import BaseRobot

    return BaseRobot.robots[walker.config.type]


def _feet(model: mujoco.MjModel, walker: Walker) -> list[int]:
    bodies = {model.body(foot).id for foot in type_of(walker).feet}
    solid = {*np.flatnonzero(model.geom_contype).tolist(), *model.pair_geom1.tolist(), *model.pair_geom2.tolist()}
    return [i for i in solid if model.geom_bodyid[i] in bodies]


def _model(walker: Walker, file: str, timestep: float) -> mujoco.MjModel:
    """The maker's model on a floor, with a free root and the drives that the policy knows."""
    spec = mujoco.MjSpec.from_file(str(resolve(file)))
    cls = type_of(walker)
    ours = {synonym: name for synonym, name in cls.synonyms.items()} if cls.synonyms else {}
    for kind in ('actuators', 'sensors', 'keys', 'equalities', 'tendons'):
        for element in list(getattr(spec, kind)):
            if kind == 'actuators':
                _keep_limit(spec, element)
            spec.delete(element)
    root = spec.worldbody.first_body()
    for joint in list(root.joints):
        spec.delete(joint)
    root.add_freejoint()
    for joint in spec.joints:
        joint.name = ours.get(joint.name, joint.name)
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            name = str(joint.name)
            kp, kd = cls.drives.gains(name)
            drive = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            drive.set_to_position(kp=kp, kv=kd)
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(name='floor', type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    for name in walker.walking and load_policy(_policy_file(walker)).metadata.joint_names or ():
        if model.joint(name) is None:
            raise SystemExit(f'{file} has no joint {name!r}; {did_you_mean(name, [j.name for j in spec.joints])}')
    return model


def _keep_limit(spec: mujoco.MjSpec, actuator) -> None:
    """A motor's limit becomes that of its joint."""
    low, high = actuator.forcerange
    if high == low:
        low, high = np.array(actuator.ctrlrange) * actuator.gear[0]
    joint = spec.joint(actuator.target)
    if (
        high > low
        and joint.actfrclimited != mujoco.mjtLimited.mjLIMITED_TRUE
        and actuator.biastype == mujoco.mjtBias.mjBIAS_NONE
    ):
        joint.actfrcrange = [low, high]
        joint.actfrclimited = True


def _policy_file(walker: Walker):
    assert walker.walking is not None
    return resolve(walker.walking.policy_weights_path, POLICY_SUFFIXES)


def main() -> None:
    """Walk, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('robot', choices=list(WALKERS))
    parser.add_argument('model', help="the maker's model: an MJCF file, or menagerie:<robot>")
    parser.add_argument('--episodes', type=int, default=64)
    parser.add_argument('--policy', help='another policy file than the one that comes with InternUtopia')
    options = parser.parse_args()
    walker = WALKERS[options.robot]
    policy = load_policy(options.policy or _policy_file(walker))
    walk = Walk(walker, policy, options.model)
    rng = np.random.default_rng(0)
    step_dt = policy.metadata.step_dt
    every, push_every = round(COMMAND_TIME / step_dt), round(PUSH_TIME / step_dt)
    errors: list[np.ndarray] = []
    survived = 0
    for _ in track(range(options.episodes), description=options.robot, transient=True):
        walk.start(rng.uniform(-math.pi, math.pi))
        command = np.zeros(3)
        for step in range(round(SECONDS / step_dt)):
            if step % every == 0:
                command = rng.uniform(policy.metadata.command_low, policy.metadata.command_high)
            walk.step(command)
            errors.append(walk.velocity() - command)
            if walk.fallen():
                break
            if (step + 1) % push_every == 0:
                bearing = rng.uniform(-math.pi, math.pi)
                walk.data.qvel[:2] += PUSH * np.array([math.cos(bearing), math.sin(bearing)])
        else:
            survived += 1
    error = np.array(errors)
    print(
        f'{options.robot} on {options.model}: survived {survived / options.episodes:.1%} of {options.episodes}, '
        f'velocity error {np.linalg.norm(error[:, :2], axis=1).mean():.3f} m/s, '
        f'yaw rate error {np.abs(error[:, 2]).mean():.3f} rad/s'
    )


if __name__ == '__main__':
    main()
