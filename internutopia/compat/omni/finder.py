"""Importer of the stand-ins: it comes after all others, so that real modules are found first.

Until `install` is called, the error of a failing import of `omni` states how to install them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from typing_extensions import override

from internutopia.util import did_you_mean, log
from internutopia.util.conventions import GONE_NAMES, raise_if_gone

_HERE = 'internutopia.compat.omni'
_UTILS = {  # below `isaacsim.core.utils`, up to Isaac Sim 5 also called `omni.isaac.core.utils`
    'rotations': f'{_HERE}.rotations:ONE',
    'numpy': f'{_HERE}.rotations:MANY',
    'numpy.rotations': f'{_HERE}.rotations:MANY',
    'torch': f'{_HERE}.replicator:SEEDS',
    'torch.maths': f'{_HERE}.replicator:SEEDS',
    'prims': f'{_HERE}.prims',
    'stage': f'{_HERE}.stage_utils',
    'types': 'internutopia.core.robot.articulation_action',
    'mesh': f'{_HERE}.prim_shapes:MESH',
    'bounds': f'{_HERE}.prim_shapes:BOUNDS',
    'semantics': f'{_HERE}.prim_shapes:SEMANTICS',
    'xforms': f'{_HERE}.xforms:XFORMS',
    'transformations': f'{_HERE}.xforms:TRANSFORMATIONS',
    'viewports': f'{_HERE}.simulation:VIEWPORTS',
    'carb': f'{_HERE}.app:CARB_UTILS',
    'extensions': f'{_HERE}.app:EXTENSIONS',
}
_SHAPES = ('', '.cuboid', '.sphere', '.cylinder', '.capsule', '.cone', '.ground_plane')
_API = {  # below `omni.isaac.core` and `isaacsim.core.api`
    '': f'{_HERE}.simulation:CONTEXTS',
    '.world': f'{_HERE}.simulation:CONTEXTS',
    '.simulation_context': f'{_HERE}.simulation:CONTEXTS',
    **{f'.objects{name}': f'{_HERE}.objects:OBJECTS' for name in _SHAPES},
    '.materials': f'{_HERE}.objects:MATERIALS',
    '.robots': f'{_HERE}.views:ROBOTS',
    '.robots.robot': f'{_HERE}.views:ROBOTS',
}
_PRIMS = ('', *(f'.{kind}_prim{view}' for kind in ('rigid', 'xform', 'geometry') for view in ('', '_view')))
_ARTICULATIONS = ('', '.articulation', '.articulation_view')
MODULES = {
    **{f'omni.isaac.core.utils.{name}': source for name, source in _UTILS.items()},
    **{f'isaacsim.core.utils.{name}': source for name, source in _UTILS.items()},
    **{f'omni.isaac.core{name}': source for name, source in _API.items()},
    **{f'isaacsim.core.api{name}': source for name, source in _API.items()},
    **{f'omni.isaac.core.prims{name}': f'{_HERE}.views:SINGLE_NAMES' for name in _PRIMS},
    **{f'omni.isaac.core.articulations{name}': f'{_HERE}.views:ARTICULATIONS' for name in _ARTICULATIONS},
    'isaacsim.core.prims': f'{_HERE}.views:VIEWS',
    'omni.isaac.motion_generation': f'{_HERE}.motion_generation:NAMES',
    'isaacsim.robot_motion.motion_generation': f'{_HERE}.motion_generation:NAMES',
    'carb': f'{_HERE}.app:LOGGING',
    'carb.settings': f'{_HERE}.app:SETTINGS',
    'pxr.PhysxSchema': f'{_HERE}.physx_schema:SCHEMAS',
    'omni.usd': f'{_HERE}.mirror:USD',
    'omni.timeline': f'{_HERE}.app:TIMELINE',
    'omni.kit.app': f'{_HERE}.app:APP',
    'omni.physx': f'{_HERE}.app:PHYSX',
    'omni.physx.scripts.utils': 'internutopia.compat.v2.core_util:OF_PHYSX',
    'omni.replicator.core': f'{_HERE}.replicator:REPLICATOR',
}
"""Importable modules, and the module whose own names each has; `module:NAMES` if only those of that tuple, or of
that dict, under other names."""
_PACKAGES = {'.'.join(name.split('.')[:depth]) for name in MODULES for depth in range(1, name.count('.') + 1)} | {
    'omni.isaac.kit'
}
_ROOTS = ('omni', 'isaacsim', 'carb', 'pxr')
_SIGNPOSTED = ('omni', 'isaacsim')
_SIGNS_OF_ISAAC_SIM = ('isaacsim', 'omni.isaac.core')
for _package in ('isaacsim', 'omni.isaac.kit'):
    GONE_NAMES[_package]['SimulationApp'] = (
        f'{_package}.SimulationApp is not available without Isaac Sim: an Env starts the simulation itself; '
        'env.simulation_app has is_running, update and close'
    )


for _name in ('WriterRegistry', 'distribution', 'get', 'modify', 'new_layer', 'randomizer', 'trigger', 'writers'):
    GONE_NAMES['omni.replicator.core'][_name] = (
        f'omni.replicator.core.{_name} is not available: RepCamera and recordings write images, the task config '
        'defines the content of an env, LearningCfg randomizes it'
    )


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of the stand-ins."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the stand-in of that name. ModuleNotFoundError with close matches for another module of Isaac Sim."""
        if fullname.partition('.')[0] not in _ROOTS or _is_probe(fullname) or _is_other(fullname):
            return None
        if fullname not in MODULES and fullname not in _PACKAGES:
            hint = did_you_mean(fullname, MODULES)
            raise ModuleNotFoundError(
                f'internutopia.compat has no stand-in for {fullname!r} of Isaac Sim; {hint}', name=fullname
            )
        return ModuleSpec(fullname, self, origin=MODULES.get(fullname), is_package=fullname in _PACKAGES)

    @override
    def exec_module(self, module: ModuleType) -> None:
        """Give a stand-in the public names of its source."""
        if module.__name__ in MODULES:
            path, _, names = MODULES[module.__name__].partition(':')
            source = importlib.import_module(path)
            own = getattr(source, names) if names else [name for name in vars(source) if _is_own(source, name)]
            aliases = own if isinstance(own, Mapping) else {name: name for name in own}
            vars(module).update({name: getattr(source, its) for name, its in aliases.items()})
            vars(module).update(__doc__=source.__doc__, __file__=source.__file__)
        if module.__name__ in GONE_NAMES:
            vars(module).update(__getattr__=raise_if_gone(module.__name__))


class _Signpost(MetaPathFinder):
    """Finder of nothing: where an import of Isaac Sim fails, its error states how to install the stand-ins."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, for `importlib.util.find_spec`, too. ModuleNotFoundError if it is imported and missing."""
        if fullname not in _SIGNPOSTED or is_installed() or _is_probe(fullname):
            return None
        if fullname == 'omni' and _is_there('isaacsim'):
            return None
        raise ModuleNotFoundError(
            f'No module named {fullname!r}: Isaac Sim is not installed. For stand-ins of its modules, set '
            'INTERNUTOPIA_COMPAT=2.x in the environment or SimConfig(omni_compat=True), or call '
            'internutopia.compat.install() before the import',
            name=fullname,
        )


_FINDER = _Finder()
_SIGNPOST = _Signpost()


def announce() -> None:
    """Add to the error of a failing import of `omni` how to install the stand-ins."""
    if _SIGNPOST not in sys.meta_path:
        sys.meta_path.append(_SIGNPOST)


def install() -> bool:
    """Make the stand-ins importable; may be called again.

    Returns:
        Whether they are: False, with a warning, where Isaac Sim itself is installed, which stays as it is.
    """
    if is_installed():
        return True
    found = next(filter(_is_there, _SIGNS_OF_ISAAC_SIM), None)
    if found is not None:
        log.warning('Isaac Sim is installed (module %s): its own modules are used', found)
        return False
    sys.meta_path.append(_FINDER)
    return True


def uninstall() -> None:
    """Take the stand-ins back, also those that were imported, what they added to USD, and the stage."""
    if is_installed():
        sys.meta_path.remove(_FINDER)
    for name in [name for name, module in sys.modules.items() if is_stand_in(module)]:
        del sys.modules[name]
        parent, _, child = name.rpartition('.')
        if parent in sys.modules:
            vars(sys.modules[parent]).pop(child, None)
    for source in ('mirror', 'physx_schema'):
        if (module := sys.modules.get(f'{_HERE}.{source}')) is not None:
            module.forget()


def is_installed() -> bool:
    """Return whether the stand-ins can be imported."""
    return _FINDER in sys.meta_path


def is_stand_in(module: object) -> bool:
    """Return whether a module is one of these, not one of Isaac Sim."""
    return getattr(getattr(module, '__spec__', None), 'loader', None) is _FINDER


def _is_probe(name: str) -> bool:
    """Return whether `importlib.util.find_spec` calls a finder for a package: code that checks for Isaac Sim."""
    return '.' not in name and sys._getframe(3).f_globals.get('__name__') == importlib.util.__name__


def _is_other(name: str) -> bool:
    """Return whether a module of USD is none that Isaac Sim alone has."""
    return name.partition('.')[0] == 'pxr' and name not in MODULES


def _is_there(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even its parent is there
        return False


def _is_own(source: ModuleType, name: str) -> bool:
    return not name.startswith('_') and getattr(getattr(source, name), '__module__', None) == source.__name__
