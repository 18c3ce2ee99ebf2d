"""Suites that come with InternUtopia; `SUITES` has their names."""

from __future__ import annotations

from collections.abc import Callable

from internutopia.evaluation.suites import Suite


def _tabletop() -> Suite:
    from internutopia_extension.suites.tabletop import SUITE

    return SUITE


def _homes() -> Suite:
    from internutopia_extension.suites.homes import SUITE

    return SUITE


SUITES: dict[str, Callable[[], Suite]] = {'InternUtopia/Tabletop': _tabletop, 'InternUtopia/Homes': _homes}
"""Functions that return the suites, by name; the entry point of the group `internutopia.suites`."""
