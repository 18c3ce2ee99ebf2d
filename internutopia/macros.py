"""Settings of the whole process, in `gm`.

`gm.ASSET_PATH` is the folder that robots, scenes and policies are looked up in: the environment variable
`INTERNUTOPIA_ASSETS_PATH` if it is set, else what `python -m internutopia.set_assets_path` has written down, else the
`assets` folder of this package. It may be assigned before anything
has read it; afterwards that is an error, because configs that were built meanwhile already hold the old path.
"""

import os

from internutopia.default_config import DEFAULT_ASSETS_PATH
from internutopia.util import did_you_mean
from internutopia.util.conventions import raise_if_gone

__getattr__ = raise_if_gone(__name__)


class MacroDict:
    """Named settings that can be assigned until they are first read."""

    _values: dict[str, str]
    _read: set[str]

    ASSET_PATH: str
    """Folder of robots, scenes and policies, without a trailing slash."""

    def __init__(self, **values: str) -> None:
        self.__dict__['_values'] = values
        self.__dict__['_read'] = set()

    def __getattr__(self, name: str) -> str:
        # Dunder and private names are probed by copy and pickle before the values exist.
        if name.startswith('_') or name not in self._values:
            raise AttributeError(
                f"there is no setting '{name}'; {did_you_mean(name, self.__dict__.get('_values', ()))}"
            )
        self._read.add(name)
        return self._values[name]

    def __setattr__(self, name: str, value: str) -> None:
        if name not in self._values:
            raise AttributeError(f"there is no setting '{name}'; {did_you_mean(name, self._values)}")
        if name in self._read:
            raise AttributeError(
                f"'{name}' was read already and keeps its value; assign it before importing any configs"
            )
        self._values[name] = value


def determine_gm_path(default_path: str, env_var_name: str) -> str:
    """The folder that an environment variable names, or a default one."""
    return os.environ.get(env_var_name) or default_path


gm = MacroDict(ASSET_PATH=determine_gm_path(DEFAULT_ASSETS_PATH, 'INTERNUTOPIA_ASSETS_PATH'))
"""The settings of this process."""
