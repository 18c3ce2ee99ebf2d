"""Functions of `internutopia.core.util` of 2.x: joint orders, quaternions, joints of an env, colliders of a stage.

Colliders are those of prims in a USD stage of your own, to be written to a file that is then a scene, a robot or an
object. A scene that runs here is compiled and is no stage: what is changed in its file counts from the next `Env` on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from internutopia.compat.numbers import checked_numbers
from internutopia.core.robot.env_scene import EnvJoints
from internutopia.model.spec import JointSpec
from internutopia.util import did_you_mean, rotations

if TYPE_CHECKING:
    from pxr import Usd
    from torch import Tensor

_KINDS: MappingProxyType[str, Literal['fixed', 'hinge', 'slide', 'ball', 'free']] = MappingProxyType(
    {
        'FixedJoint': 'fixed',
        'Joint': 'free',
        'PrismaticJoint': 'slide',
        'RevoluteJoint': 'hinge',
        'SphericalJoint': 'ball',
    }
)
_IN_ENV = re.compile(r'/World/env_(\d+)(/.+)')


class gym_adapter:  # noqa: N801 - the public name of 2.x
    """Reordering of joint values between a policy and the simulation.

    Arrays are numpy arrays or torch tensors whose last axis runs over joints; results are new arrays. Either list may
    name a subset of the other, as long as what is requested is there.

    Args:
        joint_names_gym: Joint names in the order of the policy.
        joint_names_sim: Joint names in the order of the simulation.
    """

    def __init__(self, joint_names_gym: list[str], joint_names_sim: list[str]) -> None:
        self.joint_names_gym = joint_names_gym
        self.joint_names_sim = joint_names_sim

    def gym2sim(self, action: Any) -> Any:
        """Reorder an action (..., k) from the order of the policy to the order of the simulation."""
        return self.rearange_order(action, self.joint_names_gym, self.joint_names_sim)

    def sim2gym(self, obs: Any) -> Any:
        """Reorder joint values (..., k) from the order of the simulation to the order of the policy."""
        return self.rearange_order(obs, self.joint_names_sim, self.joint_names_gym)

    @staticmethod
    def rearange_order(src: Any, from_joint_names: list[str], to_joint_names: list[str]) -> Any:
        """Select the values of `to_joint_names`, in that order.

        Args:
            src: Values (..., k) with one entry per name in `from_joint_names`.
            from_joint_names: The order that `src` has.
            to_joint_names: The order of the result, (..., len(to_joint_names)).

        Raises:
            ValueError: `src` has another length, or a wanted joint is not among `from_joint_names`.
        """
        if src.shape[-1] != len(from_joint_names):
            raise ValueError(f'expected {len(from_joint_names)} joint values, got an array of shape {tuple(src.shape)}')
        column = {name: index for index, name in enumerate(from_joint_names)}
        for name in to_joint_names:
            if name not in column:
                raise ValueError(f"there is no joint '{name}' to take a value from; {did_you_mean(name, column)}")
        return src[..., [column[name] for name in to_joint_names]]


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    """Rotate vectors `v` (N, 3) by the inverse of unit quaternions `q` (N, 4), into the rotated frame.

    For example a velocity in the world, seen from a body of that orientation. Both have one dtype.
    """
    return rotations.quat_rotate_inverse(q, v)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_multiply(q1: Tensor, q2: Tensor) -> Tensor:
    """Return the Hamilton product `q1 * q2` (..., 4): the rotation q2 followed by q1."""
    return rotations.quat_multiply(q1, q2)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_conjugate(q: Tensor) -> Tensor:
    """Return the inverse of unit quaternions (..., 4)."""
    return rotations.quat_conjugate(q)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_to_gravity_component(quaternion: Tensor) -> Tensor:
    """Return the direction of gravity, `(0, 0, -1)` in the world, in the frames of bodies (..., 4): (..., 3)."""
    down = quaternion.new_tensor([0.0, 0.0, -1.0]).expand(*quaternion.shape[:-1], 3)
    return quat_rotate_inverse(quaternion, down)


def create_joint(
    prim_path: str,
    joint_type: str,
    body0: str | None = None,
    body1: str | None = None,
    enabled: bool = True,
    joint_frame_in_parent_frame_pos: Sequence[float] | None = None,
    joint_frame_in_parent_frame_quat: Sequence[float] | None = None,
    joint_frame_in_child_frame_pos: Sequence[float] | None = None,
    joint_frame_in_child_frame_quat: Sequence[float] | None = None,
    break_force: float | None = None,
    break_torque: float | None = None,
) -> None:
    """Connect two bodies of an env by a joint, or a body and the world; called after `Env(config)`.

    In an env that was not reset yet, the joint is part of all episodes; in one that runs, it is there from now on,
    until the episode ends. The env is one of the Env that was made or reset last in this thread. Bodies that a joint
    connects do not collide. What is not given of its frame on one body is where the other one has it at the start (in
    an env that runs: now); if nothing is given, the frame is that of the child (of the parent if the world is the
    child). A `RevoluteJoint` turns about the x axis of its frame, a `PrismaticJoint` slides along it.

    Args:
        prim_path: name of the joint; another one of the same path in the env takes its place.
        joint_type: `'FixedJoint'`, `'RevoluteJoint'`, `'PrismaticJoint'`, `'SphericalJoint'`, or `'Joint'`, which holds
            nothing and only keeps its bodies from colliding.
        body0: prim path of the parent, a link, object or body of the scene: `/World/env_0/robots/h1/pelvis`. None is
            the world.
        body1: prim path of the child, in the same env. None is the world.
        enabled: False has no joint, and takes back the one of that path.
        joint_frame_in_parent_frame_pos: position of its frame on the parent [m, times the scale of the robot, object or
            scene; on the world: in the world frame].
        joint_frame_in_parent_frame_quat: its orientation there, `(x, y, z, w)`, as in 2.x.
        joint_frame_in_child_frame_pos: position of its frame on the child.
        joint_frame_in_child_frame_quat: its orientation there.
        break_force: force [N] above which it breaks: it is there no more, and its bodies collide; looked at after each
            step. None or infinite: never.
        break_torque: torque [N·m] about its frame above which it breaks, likewise.

    Raises:
        ValueError: an argument is wrong, or the env does not exist. A body that is not there is one, too; before the
            first reset, of that reset.
        NotImplementedError: the env runs on another engine than `mujoco`; likewise joints that break.
        RuntimeError: there is no Env.
    """
    call = f'create_joint({prim_path!r})'
    if joint_type not in _KINDS:
        raise ValueError(f'{call}: there is no joint_type {joint_type!r}; {did_you_mean(joint_type, _KINDS)}')
    env_id, bodies = _bodies(call, body0, body1)
    parent, child = 'joint_frame_in_parent_frame', 'joint_frame_in_child_frame'
    joint = JointSpec(
        _KINDS[joint_type],
        bodies,
        (
            _vector(call, f'{parent}_pos', joint_frame_in_parent_frame_pos),
            _vector(call, f'{child}_pos', joint_frame_in_child_frame_pos),
        ),
        (
            _quaternion(call, f'{parent}_quat', joint_frame_in_parent_frame_quat),
            _quaternion(call, f'{child}_quat', joint_frame_in_child_frame_quat),
        ),
        _limit(call, 'break_force', break_force),
        _limit(call, 'break_torque', break_torque),
        path=prim_path,
    )
    joints = EnvJoints.current()
    if joints is None:
        raise RuntimeError(f'{call}: there is no Env to add it to; call it after Env(config)')
    try:
        joints.assign(env_id, prim_path, joint if enabled else None)
    except ValueError as error:
        raise ValueError(f'{call}: {error}') from None
    except NotImplementedError as error:
        raise NotImplementedError(f'{call}: {error}') from None


def set_collider_(item: Usd.Prim, approx: str | None = None, init_state: bool = True) -> None:
    """Make a collider of a mesh.

    Args:
        item: the prim of the mesh.
        approx: what it collides as, a token of `physics:approximation` such as `'convexHull'`; None leaves that as it
            is, its faces where the file has none.
        init_state: whether the collider is active.
    """
    from pxr import UsdPhysics

    UsdPhysics.CollisionAPI.Apply(item).CreateCollisionEnabledAttr(init_state)
    if approx is not None:
        UsdPhysics.MeshCollisionAPI.Apply(item).CreateApproximationAttr(approx)


def set_collider(item: Usd.Prim, approx: str | None = None, init_state: bool = True) -> None:
    """Make colliders of all meshes at and below a prim; see `set_collider_`."""
    for mesh in _meshes(item):
        set_collider_(mesh, approx, init_state)


def activate_collider_(item: Usd.Prim, enabled: bool = True) -> None:
    """Switch on the collider of a mesh. ValueError if it is none."""
    from pxr import UsdPhysics

    if not item.HasAPI(UsdPhysics.CollisionAPI):
        raise ValueError(f'{item.GetPath()} is no collider; set_collider makes it one')
    UsdPhysics.CollisionAPI(item).CreateCollisionEnabledAttr(enabled)


def deactivate_collider_(item: Usd.Prim) -> None:
    """Switch off the collider of a mesh. ValueError if it is none."""
    activate_collider_(item, enabled=False)


def remove_collider_(item: Usd.Prim) -> None:
    """Make no collider of a mesh."""
    from pxr import UsdPhysics

    item.RemoveAPI(UsdPhysics.MeshCollisionAPI)
    item.RemoveAPI(UsdPhysics.CollisionAPI)


def _meshes(item: Usd.Prim) -> list[Usd.Prim]:
    from pxr import Usd, UsdGeom

    return [prim for prim in Usd.PrimRange(item) if prim.IsA(UsdGeom.Mesh)]


def _of_all(call: Callable[[Usd.Prim], None]) -> Callable[[Usd.Prim], None]:
    """Return a function that does to the colliders of all meshes at and below a prim what a function does to one."""

    def of_all(item: Usd.Prim) -> None:
        from pxr import UsdPhysics

        for mesh in _meshes(item):
            if mesh.HasAPI(UsdPhysics.CollisionAPI):
                call(mesh)

    of_all.__doc__ = f'As `{call.__name__}`, of all meshes at and below a prim.'
    return of_all


activate_collider, deactivate_collider = _of_all(activate_collider_), _of_all(deactivate_collider_)
remove_collider = _of_all(remove_collider_)


def set_collider_of_shapes(prim: Usd.Prim, approximationShape: str | None = None, **options: Any) -> None:  # noqa: N803
    """Make colliders of all meshes at and below a prim; see `set_collider_`. Of an env, they are those of its files."""
    set_collider(prim, approximationShape)


OF_PHYSX = {'setCollider': 'set_collider_of_shapes', 'removeCollider': 'remove_collider'}
"""Names of `omni.physx.scripts.utils`, and what they are here."""


def _bodies(call: str, body0: str | None, body1: str | None) -> tuple[int, tuple[str | None, str | None]]:
    """Return the env of two bodies and their paths below it. ValueError if they are not in one env."""
    env_ids, paths = set[int](), list[str | None]()
    for name, path in (('body0', body0), ('body1', body1)):
        match = None if path is None else _IN_ENV.fullmatch(path)
        if path is not None and match is None:
            raise ValueError(f'{call}: {name} must be a prim path /World/env_<id>/..., got {path!r}')
        paths.append(None if match is None else match[2])
        if match is not None:
            env_ids.add(int(match[1]))
    if not env_ids:
        raise ValueError(f'{call}: body0 or body1 must name a body; None is the world')
    if len(env_ids) > 1:
        raise ValueError(f'{call}: {body0!r} and {body1!r} are in two envs, which do not interact')
    return env_ids.pop(), (paths[0], paths[1])


def _limit(call: str, name: str, value: float | None) -> float | None:
    """Return what breaks a joint, None for nothing. ValueError unless it is above 0."""
    if value is None or value == math.inf:
        return None
    if not isinstance(value, int | float) or not value > 0:
        raise ValueError(f'{call}: {name} must be above 0, or None for a joint that does not break, got {value!r}')
    return float(value)


def _vector(call: str, name: str, values: Sequence[float] | None) -> Any:
    return None if values is None else tuple(checked_numbers(f'{call}: {name}', values, 3).tolist())


def _quaternion(call: str, name: str, values: Sequence[float] | None) -> Any:
    """Convert `(x, y, z, w)` to a unit quaternion `(w, x, y, z)`. ValueError otherwise."""
    if values is None:
        return None
    x, y, z, w = checked_numbers(f'{call}: {name}', values, 4).tolist()
    length = math.hypot(x, y, z, w)
    if not length:
        raise ValueError(f'{call}: {name} is a quaternion of length zero; (0, 0, 0, 1) means not rotated')
    return w / length, x / length, y / length, z / length
