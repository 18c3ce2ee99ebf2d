"""`carb` and `omni.isaac.core.utils.extensions`: settings that are kept and ignored, and messages that are logged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from internutopia.util.log import log, warn_once

LOGGING = ('Double3', 'Float3', 'log_error', 'log_info', 'log_verbose', 'log_warn', 'settings')
"""Names of `carb`."""
SETTINGS = ('Settings', 'get_settings')
"""Names of `carb.settings`."""
CARB_UTILS = ('get_carb_setting', 'set_carb_setting')
"""Names of `isaacsim.core.utils.carb`."""
EXTENSIONS = ('disable_extension', 'enable_extension')
"""Names of `isaacsim.core.utils.extensions`."""

_settings: dict[str, Any] = {}


class Float3(NamedTuple):
    """Three numbers."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


Double3 = Float3


class Settings:
    """Settings of Kit: kept, and otherwise unused."""

    def get(self, path: str) -> Any:
        """Return a setting, None if it was not set."""
        return _settings.get(path)

    def set(self, path: str, value: Any) -> None:
        """Keep a setting, with one warning that it changes nothing."""
        warn_once('carb setting %s is ignored: it only affects Isaac Sim', path)
        _settings[path] = value

    get_as_string = get_as_bool = get_as_int = get_as_float = get
    set_string = set_bool = set_int = set_float = set_default = set


get_settings = Settings
settings = SimpleNamespace(get_settings=get_settings)  # the module as an attribute of `carb`


def get_carb_setting(carb_settings: Settings, setting: str) -> Any:
    """Return a setting, None if it was not set."""
    return carb_settings.get(setting)


def set_carb_setting(carb_settings: Settings, setting: str, value: Any) -> None:
    """Keep a setting, which changes nothing."""
    carb_settings.set(setting, value)


log_error, log_warn, log_info, log_verbose = log.error, log.warning, log.info, log.debug


def enable_extension(extension_name: str) -> bool:
    """Warn once that there are no extensions of Kit; returns False."""
    warn_once('extension %s of Isaac Sim is not available', extension_name)
    return False


def disable_extension(extension_name: str) -> bool:
    """Do nothing; returns True."""
    return True
