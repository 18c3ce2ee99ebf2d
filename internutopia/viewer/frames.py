"""Frames: what pages are shown of envs at one instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.viewer.access import ArmPose
from internutopia.viewer.panels import EpisodeFacts
from internutopia.viewer.stage import EnvSnapshot
from internutopia.viewer.targets import ArmKey


@dataclass(frozen=True)
class Report:
    """What panels say of the env that is shown: figures, and pictures of cameras by robot and sensor."""

    figures: Mapping[str, Any]
    pictures: Mapping[tuple[str, str], NDArray[np.uint8]]


@dataclass(frozen=True)
class Frame:
    """What envs looked like after a step or reset.

    Attributes:
        envs: those that are shown and hold an episode.
        episode: that of the env that is shown.
        time: of that episode [s].
        report: None where panels can wait.
        arms: of that env.
    """

    envs: Sequence[EnvSnapshot] = ()
    episode: EpisodeFacts | None = None
    time: float = 0.0
    report: Report | None = None
    arms: Mapping[ArmKey, ArmPose] = field(default_factory=dict)
