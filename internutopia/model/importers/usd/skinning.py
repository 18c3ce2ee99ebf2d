"""Skinned meshes (UsdSkel) in a pose: that of the first frame of their animation, else the skeleton's rest pose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from internutopia.model.importers.file_warnings import FileWarnings

if TYPE_CHECKING:
    from pxr import Usd, UsdSkel


def pose_skinned(stage: Usd.Stage, warnings: FileWarnings) -> None:
    """Write the points of skinned meshes, as their skeletons and blend shapes hold them, into the session layer."""
    from pxr import Sdf, Usd, UsdSkel

    everywhere = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
    paths = [prim.GetPath() for prim in Usd.PrimRange.Stage(stage, everywhere) if prim.IsA(UsdSkel.Root)]
    poses = []
    session = stage.GetSessionLayer()
    for path in paths:
        # each by itself: what refers to a root must not be seen as posed already
        pose = Sdf.Layer.CreateAnonymous()
        session.subLayerPaths.append(pose.identifier)
        stage.SetEditTarget(pose)
        posed = _pose(UsdSkel.Root.Get(stage, path))
        stage.SetEditTarget(session)
        session.subLayerPaths.remove(pose.identifier)
        if posed:
            poses.append(pose)
            warnings.add('skinned meshes stand still in one pose', str(path))
        else:
            warnings.add('skeleton cannot be read, its meshes are shown unposed', str(path))
    for pose in poses:
        session.subLayerPaths.append(pose.identifier)


def _pose(root: UsdSkel.Root) -> bool:
    """Write the pose of the meshes below a root to the edit target; returns True if that worked."""
    from pxr import Gf, Tf, UsdSkel

    try:
        time = _first_frame(root)
        return bool(UsdSkel.BakeSkinning(root, Gf.Interval(time, time)))
    except Tf.ErrorException:
        return False


def _first_frame(root: UsdSkel.Root) -> float:
    """Return the first time sample of the animations of the skeletons below a root; 0 if they do not move."""
    from pxr import Usd, UsdSkel

    cache = UsdSkel.Cache()
    cache.Populate(root, Usd.PrimDefaultPredicate)
    times: list[float] = []
    for prim in Usd.PrimRange(root.GetPrim()):
        query = cache.GetSkelQuery(UsdSkel.Skeleton(prim)) if prim.IsA(UsdSkel.Skeleton) else None
        animation = query.GetAnimQuery() if query else None
        if animation:
            times += animation.GetJointTransformTimeSamples() + animation.GetBlendShapeWeightTimeSamples()
    return min(times, default=0.0)
