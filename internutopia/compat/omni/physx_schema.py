"""`pxr.PhysxSchema`: API schemas of PhysX by which scripts author USD files, where the package of NVIDIA is not there.

A class writes the attributes that it has in PhysX, under their names in files: `PhysxRigidBodyAPI.Apply(prim)` lists
the schema, `CreateDisableGravityAttr(True)` writes `physxRigidBody:disableGravity`. The importer reads what the page on
formats says; others are written, and ignored when the file is loaded.

USD itself knows no schema without a plugin. So `Usd.Prim` gets to know these when the module is imported: `HasAPI`,
`ApplyAPI` and `RemoveAPI` take them, and `GetAppliedSchemas` names them, until `forget`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from pxr import Sdf, Usd  # noqa: TID253 - imported with `pxr.PhysxSchema` alone

from internutopia.util import did_you_mean

_ATTRIBUTES = {  # by schema: attributes by type
    'PhysxRigidBodyAPI': {
        'Bool': 'disableGravity enableCCD retainAccelerations enableGyroscopicForces',
        'Float': 'angularDamping linearDamping maxAngularVelocity maxLinearVelocity maxDepenetrationVelocity '
        'sleepThreshold stabilizationThreshold',
        'Int': 'solverPositionIterationCount solverVelocityIterationCount',
    },
    'PhysxCollisionAPI': {'Float': 'contactOffset restOffset torsionalPatchRadius minTorsionalPatchRadius'},
    'PhysxContactReportAPI': {'Float': 'threshold'},
    'PhysxArticulationAPI': {
        'Bool': 'articulationEnabled enabledSelfCollisions',
        'Int': 'solverPositionIterationCount solverVelocityIterationCount',
        'Float': 'sleepThreshold stabilizationThreshold',
    },
    'PhysxJointAPI': {'Float': 'armature jointFriction maxJointVelocity'},
    'PhysxMaterialAPI': {'Token': 'frictionCombineMode restitutionCombineMode', 'Bool': 'improvePatchFriction'},
    'PhysxLimitAPI': {'Float': 'stiffness damping restitution bounceThreshold'},
    'PhysxForceAPI': {'Vector3f': 'force torque', 'Token': 'mode', 'Bool': 'worldFrameEnabled'},
    'PhysxTriggerAPI': {},
    'PhysxTriangleMeshCollisionAPI': {'Float': 'weldTolerance'},
    'PhysxTriangleMeshSimplificationCollisionAPI': {'Float': 'metric simplificationMetric weldTolerance'},
    'PhysxSDFMeshCollisionAPI': {
        'Float': 'sdfMargin sdfNarrowBandThickness',
        'Int': 'sdfResolution sdfSubgridResolution',
    },
    'PhysxSceneAPI': {
        'Bool': 'enableCCD enableGPUDynamics enableStabilization',
        'Token': 'broadphaseType solverType',
        'UInt': 'timeStepsPerSecond',
    },
    'PhysxConvexHullCollisionAPI': {'Int': 'hullVertexLimit'},
    'PhysxConvexDecompositionCollisionAPI': {
        'Int': 'maxConvexHulls hullVertexLimit voxelResolution',
        'Bool': 'shrinkWrap',
    },
}


class _Schema:
    """API schema on a prim."""

    _prefix: ClassVar[str]
    _types: ClassVar[dict[str, str]]

    def __init__(self, prim: Any):
        self._prim: Usd.Prim = prim.GetPrim()

    @classmethod
    def Apply(cls, prim: Any) -> _Schema:  # noqa: N802
        """List the schema on a prim; returns it."""
        prim.GetPrim().AddAppliedSchema(cls.__name__)
        return cls(prim)

    @classmethod
    def Get(cls, stage: Any, path: Any) -> _Schema:  # noqa: N802
        """Return the schema on the prim at a path."""
        return cls(stage.GetPrimAtPath(path))

    def GetPrim(self) -> Usd.Prim:  # noqa: N802
        """Return the prim."""
        return self._prim

    def __bool__(self) -> bool:
        return type(self).__name__ in _listed(self._prim)

    def __getattr__(self, name: str) -> Any:
        """Return `Create<Attribute>Attr` or `Get<Attribute>Attr` of the schema. AttributeError with close matches."""
        calls = {f'{verb}{_capital(each)}Attr': each for each in self._types for verb in ('Create', 'Get')}
        if name not in calls:
            raise AttributeError(f'{type(self).__name__} has no {name!r} here; {did_you_mean(name, calls)}')
        attribute = f'{self._prefix}:{calls[name]}'
        if name.startswith('Get'):
            return lambda: self._prim.GetAttribute(attribute)

        def create(value: Any = None, writeSparsely: bool = False) -> Any:  # noqa: N803
            kind = getattr(Sdf.ValueTypeNames, self._types[calls[name]])
            made = self._prim.CreateAttribute(attribute, kind, custom=False)
            if value is not None:
                made.Set(value)
            return made

        return create


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


for _name, _by_type in _ATTRIBUTES.items():
    _members = {
        '_prefix': _name[0].lower() + _name[1:].removesuffix('API'),
        '_types': {attribute: kind for kind, names in _by_type.items() for attribute in names.split()},
        '__doc__': f'`{_name}` on a prim.',
    }
    globals()[_name] = type(_name, (_Schema,), _members)

SCHEMAS = tuple(_ATTRIBUTES)
"""Names of `pxr.PhysxSchema`."""


def _listed(prim: Any) -> list[str]:
    """Return the schemas that a prim lists, those of plugins and others."""
    listed = prim.GetMetadata('apiSchemas')
    return [] if listed is None else list(listed.GetAddedOrExplicitItems())


def _extend(name: str, own: Callable[[Any, type[_Schema]], Any]) -> None:
    """Let a method of `Usd.Prim` take these schemas, too."""
    method = getattr(Usd.Prim, name)

    def extended(prim: Any, *args: Any, **options: Any) -> Any:
        schema = args[0] if args else options.get('schemaType')
        if isinstance(schema, type) and issubclass(schema, _Schema):
            return own(prim, schema)
        return method(prim, *args, **options)

    _of_usd[name] = method
    setattr(Usd.Prim, name, extended)


def _all_applied(prim: Any) -> list[str]:
    return [*_of_usd['GetAppliedSchemas'](prim), *(name for name in _listed(prim) if name in SCHEMAS)]


def forget() -> None:
    """Give `Usd.Prim` its own methods back; an import of `pxr.PhysxSchema` extends them again."""
    for name, method in _of_usd.items():
        setattr(Usd.Prim, name, method)
    del sys.modules[__name__]


_of_usd: dict[str, Callable[..., Any]] = {'GetAppliedSchemas': Usd.Prim.GetAppliedSchemas}
Usd.Prim.GetAppliedSchemas = _all_applied  # pyright: ignore[reportAttributeAccessIssue]
_extend('HasAPI', lambda prim, schema: bool(schema(prim)))
_extend('ApplyAPI', lambda prim, schema: prim.AddAppliedSchema(schema.__name__))
_extend('RemoveAPI', lambda prim, schema: prim.RemoveAppliedSchema(schema.__name__))
_extend('CanApplyAPI', lambda prim, schema: True)
