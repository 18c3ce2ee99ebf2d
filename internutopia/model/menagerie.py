"""Models of MuJoCo Menagerie as assets: `menagerie:unitree_h1`, for another file `menagerie:unitree_g1/g1_with_hands`.

They come with the package `mujoco-menagerie`, which downloads a model when it is first used and keeps it. Where
there is no network, `MENAGERIE_ROOT` names a checkout of the repository, `MENAGERIE_CACHE_DIR` a filled cache.
"""

from __future__ import annotations

from pathlib import Path

from internutopia.util.install import install_hint

PREFIX = 'menagerie:'


def menagerie_file(asset: str) -> Path:
    """Return the file of an asset `menagerie:<robot>[/<entry>]`.

    Raises:
        FileNotFoundError: the package is not installed, it has no such model, or the model is not here and cannot be
            downloaded; the message says what helps.
    """
    robot, _, entry = asset.removeprefix(PREFIX).partition('/')
    try:
        import mujoco_menagerie
    except ImportError as error:
        raise FileNotFoundError(
            f'asset {asset!r} needs the package mujoco-menagerie ({error}): {install_hint("menagerie")}'
        ) from error
    try:
        model = mujoco_menagerie.get(robot)
        file = model.xml(entry or model.default_model)
    except LookupError as error:
        raise FileNotFoundError(f'asset {asset!r}: {error.args[0]}') from None
    except (mujoco_menagerie.MenagerieError, OSError) as error:
        raise FileNotFoundError(
            f'asset {asset!r} could not be downloaded: {error}\nOn a machine without network, set MENAGERIE_ROOT to a '
            'checkout of mujoco_menagerie, or MENAGERIE_CACHE_DIR to a folder that '
            f'`mujoco-menagerie prefetch {robot}` has filled elsewhere'
        ) from error
    if not file.is_file():
        raise FileNotFoundError(f'asset {asset!r}: there is no {file}')
    return file
