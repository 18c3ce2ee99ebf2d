"""Questions about Isaac Sim's stage; there is none while a scene runs here."""

from internutopia.core.util.absent import absent

_INSTEAD = (
    "objects and bodies are asked by name: env.runner.get_obj(name).get_pose(); `internutopia inspect` lists a file's"
)
_NAMES = (
    'compute_path_bbox',
    'get_pick_position',
    'get_grabbed_able_xform_paths',
    'get_world_transform_xform',
    'nearest_xform_from_position',
)

__getattr__ = absent(__name__, dict.fromkeys(_NAMES, _INSTEAD))
