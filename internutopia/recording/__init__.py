"""Recording of episodes as datasets, and their replay; videos and tables need the extra `record`.

from internutopia.recording import Recorder

with Recorder('out/dataset', config) as recorder:
    recorder.attach(env)
    ...  # env.reset, env.step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.recording.augmentation import augment
    from internutopia.recording.dataset import Dataset
    from internutopia.recording.looks import GeomLook, Light, Looks
    from internutopia.recording.recorder import Recorder
    from internutopia.recording.replay import Replay, ReplayCamera

__all__ = ['Dataset', 'GeomLook', 'Light', 'Looks', 'Recorder', 'Replay', 'ReplayCamera', 'augment']

_MODULES = {
    'Dataset': 'dataset',
    'GeomLook': 'looks',
    'Light': 'looks',
    'Looks': 'looks',
    'Recorder': 'recorder',
    'Replay': 'replay',
    'ReplayCamera': 'replay',
    'augment': 'augmentation',
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
