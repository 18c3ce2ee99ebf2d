"""The same in a flat whose file has lengths in centimetres."""

from .base import base

SCENE_SCALE = (1.0, 1.0, 1.0)
settings = base | {
    'split': 'centimetres',
    'env_num': 2,
    'task_settings': base['task_settings'] | {'scene_scale': SCENE_SCALE},
}
