"""Command of InternUtopia 2, which says what is there; `internutopia assets` lists, checks and gets assets.

python -m internutopia.download_assets
"""

from __future__ import annotations

import sys

from internutopia.asset_tools.listing import list_assets

_HOW = """\
Nothing is downloaded here, and nothing has to be: robots, scenes and policies come with the package.
  internutopia assets get grscenes/home/<scene id>         gets a scene of GRScenes-100 (CC BY-NC-SA) into the asset
                                                           folder; internutopia assets list --hub lists them
The asset pack of InternUtopia 2 is that dataset as a whole: GRScenes of InternRobotics on Hugging Face, GRScenes of
Shanghai_AI_Laboratory on ModelScope. After a download of your own, name its folder:
  export INTERNUTOPIA_ASSETS_PATH=<folder>                for programs started from this shell, or
  python -m internutopia.set_assets_path <folder>         for all that start afterwards"""


def main() -> int:
    """Print what is there."""
    print('\n'.join(list_assets().lines()))
    print(_HOW)
    return 0


if __name__ == '__main__':
    sys.exit(main())
