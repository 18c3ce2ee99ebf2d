"""Frames: states of envs at one instant, for pages."""

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
    """Contents of the panels of the env that is shown: figures, and pictures of cameras by robot and sensor."""

    figures: Mapping[str, Any]
    pictures: Mapping[tuple[str, str], NDArray[np.uint8]]


@dataclass(frozen=True)
class Frame:
    """States of envs after a step or reset.

    Attributes:
        envs: those that are shown and hold an episode.
        episode: that of the env that is shown.
        time: of that episode [s].
        report: contents of the panels; None to leave them as they are.
        arms: of that env.
    """

    envs: Sequence[EnvSnapshot] = ()
    episode: EpisodeFacts | None = None
    time: float = 0.0
    report: Report | None = None
    arms: Mapping[ArmKey, ArmPose] = field(default_factory=dict)
