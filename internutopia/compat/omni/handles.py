"""`isaacsim.core.prims` and `omni.isaac.core.{prims,articulations}`: handles of one prim.

A prim path of a robot, link, object or movable body of the scene is that body in physics: poses and velocities are
present, and are set there. Any other prim is one of the stage, whose edits move nothing else. Units and frames are as
of `IRigidBody` and `IArticulation`: world poses are in the world, quaternions `(w, x, y, z)`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from typing_extensions import override

from internutopia.compat.numbers import checks_arguments
from internutopia.compat.omni import mirror
from internutopia.compat.omni.adding import add_referenced
from internutopia.compat.omni.xforms import get_local_pose, get_world_pose, set_local_matrix
from internutopia.core.robot.articulation import ArticulationAction, IArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import AmbiguousPathError, IScene
from internutopia.util.log import warn_once
from internutopia.util.rotations import quat_multiply, quat_rotate

if TYPE_CHECKING:
    from pxr import Usd


class Ready:
    """Base of handles, which are ready when they are made."""

    def initialize(self, physics_sim_view: Any = None) -> None:
        """Do nothing: it is ready."""

    def post_reset(self) -> None:
        """Do nothing: `Env.reset` restores what an env starts with."""


class SingleXFormPrim(Ready):
    """A prim: a body of physics if there is one at its path, else one of the stage.

    Args:
        prim_path: where it is; where no prim is, an `Xform` is added to the stage, if the prim above it is there.
            ValueError if that is not, or below it a robot, object or scene of an env.
        name: its name.
        position: where to put it, world frame [m].
        translation: the same relative to its parent.
        orientation: how to turn it.
        scale: accepted for what physics moves; of another prim its scale.
        visible: whether it is visible on the stage.
        **options: accepted.
    """

    _default_name: ClassVar[str] = 'xform_prim'
    _moves: ClassVar[bool] = False  # whether methods of the body are the handle's, such as those of its velocities

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str | None = None,
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        **options: Any,
    ):
        self.prim_path = prim_path
        self.name = name or self._default_name
        self._found: Any = self._find()
        if self._body is None and not self.prim:
            mirror.add_xform(prim_path)
        if translation is not None:
            self.set_local_pose(translation, orientation)
        elif position is not None or orientation is not None:
            self.set_world_pose(position, orientation)
        if scale is not None and self._body is None:
            self.set_local_scale(scale)
        if visible is not None:
            self.set_visibility(visible)

    def __getattr__(self, name: str) -> Any:
        """Return a method of what physics has at the path."""
        if name.startswith('_') or not self._moves:
            raise AttributeError(f'{type(self).__name__!r} object has no attribute {name!r}')
        return getattr(self._body, name)

    @property
    def _body(self) -> Any:
        """What physics has at the path, None if it has nothing there."""
        return self._found

    @property
    def prim(self) -> Usd.Prim:
        """The prim on the stage."""
        return mirror.get_prim_at_path(self.prim_path)

    def is_valid(self) -> bool:
        """Return True if the prim is still there."""
        return bool(self.prim)

    def get_world_pose(self) -> tuple[Any, Any]:
        """Return position `(3,)` [m] and orientation `(4,)` in the world."""
        return get_world_pose(self.prim_path) if self._body is None else self._body.get_world_pose()

    @checks_arguments
    def set_world_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move it, in the world; None leaves position or orientation as it is."""
        if self._body is not None:
            self._body.set_world_pose(position, orientation)
            return
        warn_once('%s is not a physics body: it only moves on the stage', self.prim_path)
        now = self.get_world_pose()
        set_local_matrix(self.prim, *_given((position, orientation), now), in_world=True)

    def get_local_pose(self) -> tuple[Any, Any]:
        """Return the pose in the frame of its parent."""
        return get_local_pose(self.prim_path)

    @checks_arguments
    def set_local_pose(self, translation: Any = None, orientation: Any = None) -> None:
        """Move it in the frame of its parent; None leaves position or orientation as it is."""
        translation, orientation = _given((translation, orientation), self.get_local_pose())
        if self._body is None:
            set_local_matrix(self.prim, translation, orientation)
            return
        parent, turn = get_world_pose(self.prim_path.rsplit('/', 1)[0])
        self._body.set_world_pose(parent + quat_rotate(turn, translation), quat_multiply(turn, orientation))

    def get_world_scale(self) -> Any:
        """Return the scale along x, y, z `(3,)`, those of the prims above included."""
        return mirror.scale_of(mirror.get_world_transform_matrix(self.prim))

    def get_local_scale(self) -> Any:
        """Return the scale along x, y, z `(3,)`."""
        return mirror.scale_of(mirror.get_local_transform_matrix(self.prim))

    @checks_arguments
    def set_local_scale(self, scale: Any) -> None:
        """Set the scale of a prim of the stage. NotImplementedError for a body of physics."""
        if self._body is not None:
            raise NotImplementedError(f'{self.prim_path}: a body keeps the scale of its config while an env runs')
        set_local_matrix(self.prim, *self.get_local_pose(), scale=scale)

    def set_visibility(self, visible: bool) -> None:
        """Set whether it is visible, on the stage: images show it anyway."""
        if not visible:
            warn_once('%s is only hidden on the stage: images still show it', self.prim_path)
        mirror.set_visibility(self.prim, visible)

    def get_visibility(self) -> bool:
        """Return whether it is visible on the stage."""
        from pxr import UsdGeom

        return UsdGeom.Imageable(self.prim).ComputeVisibility() != UsdGeom.Tokens.invisible

    def _find(self) -> Any:
        """Return the handle of the body at the path, or None. KeyError if it is in several Envs."""
        try:
            scene = IScene.at(self.prim_path)
        except AmbiguousPathError:
            raise
        except KeyError:
            return None
        if self.prim_path in scene.robot_paths:
            return scene.articulation_at(self.prim_path)
        try:
            return scene.rigid_body_at(self.prim_path)
        except KeyError:
            return None


class SingleGeometryPrim(SingleXFormPrim):
    """A prim with a shape. What it collides as is that of the asset.

    A USD file that `add_reference_to_stage` put at the path becomes an object that stays in place, and that things
    touch with `collision=True`.
    """

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str = 'geometry_prim',
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        *,
        collision: bool = False,
        **options: Any,
    ):
        place = {'position': position, 'translation': translation, 'orientation': orientation, 'scale': scale}
        is_new = add_referenced(prim_path, name, **place, dynamic=False, collider=collision)
        super().__init__(prim_path, name, visible=visible, **({} if is_new else place), **options)

    def set_collision_enabled(self, enabled: bool) -> None:
        """Let the object collide, or not, until its episode ends. NotImplementedError for what is no object."""
        change_object(self.prim_path, collider=bool(enabled))

    def get_collision_enabled(self) -> bool:
        """Return True unless the object does not collide."""
        scene = IScene.at(self.prim_path)
        name = scene.object_paths.get(self.prim_path)
        return all(each.collider for each in scene.model.objects if each.name == name)

    def set_collision_approximation(self, approximation_type: str) -> None:
        """Do nothing, with a warning: a shape collides as what it is, a mesh as its file says."""
        warn_once('collision approximation %r of %s is ignored', approximation_type, self.prim_path)

    @checks_arguments
    def apply_physics_material(self, physics_material: Any, weaker_than_descendants: bool = False) -> None:
        """Give the object the friction of a material, until its episode ends. NotImplementedError for what is none."""
        change_object(self.prim_path, friction=friction_of(physics_material))


class SingleRigidPrim(SingleXFormPrim):
    """A rigid body. Velocities and mass are those of an `IRigidBody`. ValueError if none is at the path.

    A USD file that `add_reference_to_stage` put at the path becomes an object that physics moves.
    """

    _moves = True

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str = 'rigid_prim',
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        *,
        mass: float | None = None,
        density: float | None = None,
        linear_velocity: Any = None,
        angular_velocity: Any = None,
        **options: Any,
    ):
        place = {'position': position, 'translation': translation, 'orientation': orientation, 'scale': scale}
        is_new = add_referenced(prim_path, name, **place, mass=mass, density=density)
        super().__init__(prim_path, name, visible=visible, **({} if is_new else place), **options)
        if not isinstance(self._body, IRigidBody):
            raise ValueError(
                f'{prim_path!r} is no rigid body of an env: links, objects of the task and movable bodies of the scene '
                'are; omni.isaac.core.objects.DynamicCuboid adds one'
            )
        if density is not None and not is_new:
            raise NotImplementedError(f'{prim_path}: set a mass; densities are set in configs and files')
        if mass is not None and not is_new:
            self.set_mass(mass)
        if linear_velocity is not None:
            self.set_linear_velocity(linear_velocity)
        if angular_velocity is not None:
            self.set_angular_velocity(angular_velocity)


class SingleArticulation(SingleXFormPrim):
    """A robot. ValueError if none is at the path. What it has besides the methods of a prim is an `IArticulation`'s."""

    _default_name, _moves = 'articulation', True

    @override
    def _find(self) -> IArticulation:
        try:
            return IScene.at(self.prim_path).articulation_at(self.prim_path)
        except KeyError as error:
            raise ValueError(f'{self.prim_path!r} is no robot of an env: {error.args[0]}') from None

    def get_world_velocity(self) -> Any:
        """Return linear [m/s] and angular velocity [rad/s] of the root `(6,)`."""
        return np.concatenate([self._body.get_linear_velocity(), self._body.get_angular_velocity()])

    def get_articulation_controller(self) -> SingleArticulation:
        """Return what applies actions: this handle."""
        return self

    def set_joint_targets(self, targets: Any, kind: str, joint_indices: Any = None) -> None:
        """Set targets `(k,)` of the drives; `kind` is that field of an `ArticulationAction`."""
        self._body.apply_action(ArticulationAction(**{kind: targets}, joint_indices=joint_indices))

    def get_joints_state(self) -> SimpleNamespace:
        """Return `positions`, `velocities` and `efforts` of the joints `(dof,)`."""
        return joints_state(self)

    def get_measured_joint_efforts(self, joint_indices: Any = None) -> Any:
        """Return the forces of the drives `(k,)` [N·m or N]."""
        return self._body.get_joint_efforts(joint_indices)


def change_object(prim_path: str, **changes: Any) -> None:
    """Change `collider` or `friction` of the object at a prim path until its episode ends.

    NotImplementedError for what is no object of the task.
    """
    scene = IScene.at(prim_path)
    if prim_path not in scene.object_paths:
        objects = ', '.join(scene.object_paths) or 'none'
        raise NotImplementedError(
            f'{", ".join(changes)} of {prim_path!r}: it is no object of the task; objects: {objects}. Colliders and '
            'materials of robots and scenes are those of their files, see internutopia.core.util.physics'
        )
    scene.change_object(scene.object_paths[prim_path], **changes)


def friction_of(physics_material: Any) -> float | None:
    """Return what an object takes of a material: its dynamic friction. Its restitution costs a warning."""
    if physics_material.get_restitution():
        warn_once('restitution of physics materials is ignored: objects do not bounce')
    return physics_material.get_dynamic_friction()


def joints_state(robots: Any) -> SimpleNamespace:
    """Return the state of the joints of a robot, or of those of a view."""
    positions, velocities = robots.get_joint_positions(), robots.get_joint_velocities()
    return SimpleNamespace(positions=positions, velocities=velocities, efforts=robots.get_measured_joint_efforts())


def _given(values: tuple[Any, Any], now: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return a pose whose parts that are not given are those of now."""
    position, orientation = (
        old if new is None else np.asarray(new, float) for new, old in zip(values, now, strict=True)
    )
    return position, orientation
