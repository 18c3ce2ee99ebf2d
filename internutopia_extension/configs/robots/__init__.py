"""Configs of robots: one module each, with ready-made configs of their controllers and sensors.

The ready-made configs are shared: take one as it is, or a changed copy by `cfg.update(...)`.
"""

from internutopia_extension.configs.robots import (
    aliengo,
    franka,
    g1,
    generic,
    go2,
    gr1,
    h1,
    h1_with_hand,
    jetbot,
    mocap_controlled_franka,
    ridgeback_franka,
)

__all__ = [
    'aliengo',
    'franka',
    'g1',
    'generic',
    'go2',
    'gr1',
    'h1',
    'h1_with_hand',
    'jetbot',
    'mocap_controlled_franka',
    'ridgeback_franka',
]
