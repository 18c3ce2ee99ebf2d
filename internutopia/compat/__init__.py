"""Modules of Isaac Sim that extension packages import, for machines without Isaac Sim.

`install()` makes importable what such packages use of `omni.isaac.core`, `isaacsim.core`, `omni.usd` and
`omni.replicator.core` and what has a meaning for every physics engine: rotations, seeds, look-ups of prims on a stage
that mirrors the envs, a frame on demand. It never covers a real installation. Which modules there are:
`internutopia.compat.omni.finder.MODULES`; what each of them guarantees is in the docstring of its implementation.

Nothing is loaded before it is imported, `pxr` and `torch` not before a call needs them::

    from internutopia import compat

    compat.install()
    from omni.isaac.core.utils.rotations import quat_to_euler_angles

`SimConfig(omni_compat=True)` installs when an Env is made, in every process of a distributed run. So does
`Config(compat='2.x')`, when it is built, and `INTERNUTOPIA_COMPAT=2.x` in the environment, when
`internutopia.config` is imported.

What InternUtopia 2.x itself had is in `internutopia.compat.v2`.
"""

from internutopia.compat.omni.finder import install, is_installed, uninstall

__all__ = ['install', 'is_installed', 'uninstall']
