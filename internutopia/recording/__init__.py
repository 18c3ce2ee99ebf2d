"""Recording of episodes as datasets, and their replay; videos and tables need the extra `record`.

from internutopia.recording import Recorder

with Recorder('out/dataset', config) as recorder:
    recorder.attach(env)
    ...  # env.reset, env.step
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from internutopia.util.imports import lazy

if TYPE_CHECKING:
    from internutopia.recording.augmentation import augment
    from internutopia.recording.dataset import Dataset
    from internutopia.recording.episode_file import RecordedEpisode
    from internutopia.recording.recorder import Recorder
    from internutopia.recording.replay import GeomLook, Light, Looks, Replay, ReplayCamera

__all__ = [
    'Dataset',
    'GeomLook',
    'Light',
    'Looks',
    'RecordedEpisode',
    'Recorder',
    'Replay',
    'ReplayCamera',
    'augment',
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(('GeomLook', 'Light', 'Looks', 'Replay', 'ReplayCamera'), f'{__name__}.replay'),
        'Dataset': f'{__name__}.dataset',
        'RecordedEpisode': f'{__name__}.episode_file',
        'Recorder': f'{__name__}.recorder',
        'augment': f'{__name__}.augmentation',
    },
)
