"""Command that says which assets are there: built-in ones, and InternUtopia 2's asset pack. Nothing is downloaded.

python -m internutopia.download_assets
"""

from __future__ import annotations

import sys
from pathlib import Path

from internutopia.default_config import PACKAGED_ASSETS_PATH
from internutopia.set_assets_path import current_assets_path, describe_assets_path

# Parts of the pack, and what there is without them
_PACK = {
    'robots': 'built-in models take their place',
    'objects': 'none are built in',
    'scenes/empty.usd': 'the built-in scenes/empty.xml takes its place',
    'scenes/demo_scenes': 'none are built in',
    'scenes/GRScenes-100': 'none are built in',
}
_HOW = """\
Nothing is downloaded here, and nothing has to be: robots, scenes and policies come with the package.
The asset pack of InternUtopia 2 is the dataset GRScenes of OpenRobotLab on Hugging Face, GRScenes of
Shanghai_AI_Laboratory on ModelScope (CC BY-NC-SA). After a download of your own, name its folder:
  export INTERNUTOPIA_ASSETS_PATH=<folder>                for programs started from this shell, or
  python -m internutopia.set_assets_path <folder>         for all that start afterwards"""


def main() -> int:
    """Print what is there."""
    packaged = Path(PACKAGED_ASSETS_PATH)
    print(f'built in, below {packaged}:')
    print('  robots:', ', '.join(sorted(path.name for path in (packaged / 'robots').iterdir())))
    scenes = (path for path in (packaged / 'scenes').iterdir() if path.suffix in ('.xml', '.usda'))
    print('  scenes:', ', '.join(sorted(path.name for path in scenes)))
    print(describe_assets_path())
    folder = Path(current_assets_path()[0])
    if not folder.is_dir():
        print('  it does not exist')
    elif folder != packaged:
        for part, instead in _PACK.items():
            print(f'  {part}: {"there" if (folder / part).exists() else f"not there, {instead}"}')
    print(_HOW)
    return 0


if __name__ == '__main__':
    sys.exit(main())
