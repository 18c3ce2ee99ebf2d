"""The same in a flat whose file has lengths in centimetres."""

from .base import base

SCENE_SCALE = (0.01, 0.01, 0.01)
settings = base | {
    'split': 'centimetres',
    'env_num': 2,
    'task_settings': base['task_settings'] | {'scene_scale': SCENE_SCALE},
}
