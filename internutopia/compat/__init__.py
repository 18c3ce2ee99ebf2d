"""Guest: all that is here for code written for InternUtopia 2.x and Isaac Sim, for machines without Isaac Sim.

No other module depends on this package: `register`, called by `internutopia`, adds it to the hooks of
`internutopia.util.conventions`. `internutopia.compat.v2` has what InternUtopia 2.x itself had,
`internutopia.compat.omni` stand-ins for modules of Isaac Sim.

`install()` makes importable what extension packages use of `omni.isaac.core`, `isaacsim.core`, `omni.usd` and
`omni.replicator.core` and what has a meaning for every physics engine: rotations, seeds, queries of prims on a stage
that mirrors the envs, a frame on demand. It never covers a real installation. Which modules there are:
`internutopia.compat.omni.finder.MODULES`; what each of them guarantees is in the docstring of its implementation.

Nothing is loaded before it is imported, `pxr` and `torch` not before a call needs them::

    from internutopia import compat

    compat.install()
    from omni.isaac.core.utils.rotations import quat_to_euler_angles

`SimConfig(omni_compat=True)` installs when an Env is made, in every process of a distributed run. So does
`Config(compat='2.x')`, when it is built, and `INTERNUTOPIA_COMPAT=2.x` in the environment, when `internutopia` is
imported.
"""

from internutopia.compat.omni.finder import announce, install, is_installed, uninstall
from internutopia.compat.v2 import finder
from internutopia.util.conventions import STAND_INS, VERSIONS, version_of_process

__all__ = ['install', 'is_installed', 'register', 'uninstall']


def register() -> None:
    """Register at the hooks for other versions; may be called again."""
    VERSIONS['2.x'] = 'internutopia.compat.v2.conventions:Conventions2x'
    STAND_INS[:] = [install]
    finder.install()
    announce()
    if version_of_process() == '2.x':
        install()
