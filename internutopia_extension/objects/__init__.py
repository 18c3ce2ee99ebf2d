"""Built-in objects; importing this package registers them."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec

_MASS = 1.0  # [kg], of an object from a model file


@BaseObject.register('DynamicCube')
class DynamicCube(BaseObject):
    """A movable box with edge lengths `config.scale` [m]; it collides if `collider` is set.

    Its mass is `config.mass`, else `config.density` times its volume, else that of water.
    """

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        return _cube(config, mass=config.mass, density=config.density, collider=config.collider)


@BaseObject.register('StaticCube')
class StaticCube(BaseObject):
    """A fixed box with edge lengths `config.scale` [m] that collides; it can be teleported."""

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        return _cube(config, dynamic=False)


@BaseObject.register('VisualCube')
class VisualCube(BaseObject):
    """A fixed box with edge lengths `config.scale` [m] that does not collide."""

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        return _cube(config, dynamic=False, collider=False)


@BaseObject.register('UsdObject')
class UsdObject(BaseObject):
    """The model in `config.usd_path` (USD, URDF or MJCF), scaled by `config.scale`.

    With `collider` it is one rigid body of 1 kg that physics moves; without, it can only be seen and stays in place. A
    `fixed` one is a piece of furniture: it stays in place, parts of it move on joints (`IScene.articulation_at`).
    """

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        return _object(
            config,
            asset=config.usd_path,
            mass=_MASS if config.collider and not config.fixed else None,
            dynamic=config.collider and not config.fixed,
            collider=config.collider,
        )


def _object(config: Any, **fields: Any) -> ObjectSpec:
    """Return the model of an object, placed by its config."""
    return ObjectSpec(
        name=config.name, scale=config.scale, position=config.position, orientation=config.orientation, **fields
    )


def _cube(config: Any, **fields: Any) -> ObjectSpec:
    return _object(config, color=config.color or ObjectSpec.color, **fields)
