"""Named groups of observations: columns of flat ones, and images, with what they were in the steps before.

A group is one array `(n, ...)`; float32, or uint8 of images. The first value of an episode stands for those before,
and an env that failed keeps its last image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from internutopia.config.learning import ObservationGroupCfg, PictureGroupCfg
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.state import RobotState
from internutopia.rl.terms.sensors import picture
from internutopia.util.arrays import expand_mask, masked_assign, namespace_of

Observations = Any
"""An array `(n, ...)`, or a dict of them by group."""


def each_group(function: Callable[..., Any], observations: Any, *others: Any) -> Any:
    """Call a function with an array of observations, or with each of those in a dict; returns what it returns."""
    if not isinstance(observations, dict):
        return function(observations, *others)
    return {name: function(array, *(each[name] for each in others)) for name, array in observations.items()}


def where_envs(mask: Any, observations: Any) -> Any:
    """Return an array `(n, ...)` with zeros in the envs that are not in a mask `(n,)`."""
    xp = namespace_of(observations)
    return xp.where(expand_mask(mask, observations), observations, xp.zeros_like(observations))


class GroupedObservations:
    """Groups of the observations of all envs.

    Args:
        groups: by name.
        state: of the envs.

    Attributes:
        remembers: whether a group shows several steps, so that none must be left out.
    """

    def __init__(self, groups: Mapping[str, ObservationGroupCfg | PictureGroupCfg], state: RobotState):
        self._state = state
        self._groups = {name: _Group(cfg, state) for name, cfg in groups.items()}
        self.remembers = any(cfg.history_length > 1 for cfg in groups.values())
        self._stepped = False
        self._started = state.arrays.zeros(state.env_num, 'bool')  # since the groups were computed last

    def step(self) -> None:
        """Note that the envs made a step."""
        self._stepped = True

    def reset(self, envs: EnvSelection) -> None:
        """Note that episodes start in these envs."""
        envs.put(self._started, True)

    def compute(self, flat: Any, sizes: list[int], failed: Any) -> dict[str, Any]:
        """Compute the groups `(n, ...)` now, not to be written to.

        Args:
            flat: the terms of all groups side by side `(n, dim)`.
            sizes: number of columns of each term.
            failed: envs that failed and were not started again, bool `(n,)`.
        """
        for group, value in zip(self._groups.values(), self._values(flat, sizes), strict=True):
            group.update(value, self._stepped, self._started, failed)
        self._stepped = False
        self._started[:] = False
        return self.last()

    def first(self, flat: Any, sizes: list[int], envs: EnvSelection) -> dict[str, Any]:
        """Compute the groups `(m, ...)` in envs that have just started; `flat` is of them, too."""
        rows = slice(None) if self._state.arrays.on_device else envs.ids
        envs.put(self._started, False)
        values = zip(self._groups.items(), self._values(flat, sizes), strict=True)
        return {name: group.first(value[rows] if group.renders else value, envs) for (name, group), value in values}

    def last(self) -> dict[str, Any]:
        """Return the groups `(n, ...)` that were computed last, not to be written to."""
        return {name: group.last for name, group in self._groups.items()}

    def _values(self, flat: Any, sizes: list[int]) -> list[Any]:
        """Return the value of each group in this step."""
        values, term, column = [], 0, 0
        for group in self._groups.values():
            if group.renders:
                values.append(group.render())
                continue
            end = column + sum(sizes[term : term + group.terms])
            values.append(flat[:, column:end])
            term, column = term + group.terms, end
        return values


class _Group:
    """One group.

    Attributes:
        last: what was computed last.
        terms: number of its terms.
        renders: whether it is an image.
    """

    def __init__(self, cfg: ObservationGroupCfg | PictureGroupCfg, state: RobotState):
        self._cfg, self._state = cfg, state
        self.renders = isinstance(cfg, PictureGroupCfg)
        self.terms = 0 if isinstance(cfg, PictureGroupCfg) else len(cfg.terms)
        self._stacked = isinstance(cfg, ObservationGroupCfg) and cfg.stacked
        self._axis = -1 if isinstance(cfg, PictureGroupCfg) and cfg.layout == 'hwc' else 1  # of older values
        self.last: Any = None

    def render(self) -> Any:
        """Return the image of all envs now, uint8 of its layout."""
        cfg, xp = self._cfg, self._state.xp
        assert isinstance(cfg, PictureGroupCfg)
        values = picture(self._state, cfg.camera, cfg.data, cfg.max_depth, cfg.categories)
        if cfg.data == 'depth':
            values = xp.round(values * (255.0 / cfg.max_depth))
        values = values if values.dtype == xp.uint8 else xp.astype(xp.clip(values, 0, 255), xp.uint8)
        return xp.moveaxis(values, -1, 1) if cfg.layout == 'chw' else values

    def update(self, value: Any, stepped: bool, started: Any, failed: Any) -> None:
        """Take the value `(n, ...)` of now."""
        value = value[:, None] if self._stacked else value
        if self.last is None:
            self.last = self._repeated(value)
            return
        length, axis, xp = value.shape[self._axis], self._axis, self._state.xp
        if self.renders and (self._state.arrays.on_device or failed.any()):
            value = xp.asarray(value, copy=True)
            masked_assign(value, failed, self._cut(-length, None))
        if self._cfg.history_length == 1:
            self.last = value
            return
        last = xp.concat([self._cut(length, None) if stepped else self._cut(None, -length), value], axis=axis)
        masked_assign(last, started, self._repeated(value))
        self.last = last

    def first(self, value: Any, envs: EnvSelection) -> Any:
        """Take and return the value `(m, ...)` in envs that have just started."""
        value = self._repeated(value[:, None] if self._stacked else value)
        if self.last is None:
            shape = self._state.env_num, *value.shape[1:]
            self.last = self._state.arrays.zeros(shape, 'uint8' if self.renders else 'float32')
        envs.put(self.last, value)
        return value

    def _cut(self, begin: int | None, end: int | None) -> Any:
        """Return a part of what was computed last, along the axis of older values."""
        return self.last[..., begin:end] if self._axis == -1 else self.last[:, begin:end]

    def _repeated(self, value: Any) -> Any:
        """Return a value as it is seen where there are no older ones; the caller may write to it."""
        return self._state.xp.concat([value] * self._cfg.history_length, axis=self._axis)
