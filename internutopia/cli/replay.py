"""Commands `internutopia replay` and `internutopia convert`."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import guarded
from internutopia.cli.options import Trust, Viewer, ViewerAddress
from internutopia.cli.viewing import LOOPBACK, open_viewer
from internutopia.util import has_display
from internutopia.util.bounds import MAX_COUNT

_RATE = 15.0  # frames per second of a video, at most
_Dataset = Annotated[Path, typer.Argument(help='Folder of a recorded dataset.', metavar='DIR')]


def replay_command(
    folder: _Dataset,
    episode: Annotated[int, typer.Option(min=0, max=MAX_COUNT, help='Which episode, counted from 0.')] = 0,
    actions: Annotated[
        bool, typer.Option('--actions', help='Make its steps again with its actions, and say how far it drifts.')
    ] = False,
    camera: Annotated[
        Path | None,
        typer.Option(help='Camera of the video or new dataset, see docs/datasets.md.', metavar='CAMERA.yaml'),
    ] = None,
    augment: Annotated[
        Path | None,
        typer.Option(help='Colours, textures and lights of the video or new dataset.', metavar='LOOKS.yaml'),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Write all episodes to a new dataset, with pictures taken anew.', metavar='NEW'),
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help='Write a video of it (.mp4, .gif), in real time.', metavar='FILE')
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    trust: Trust = False,
) -> None:
    """Go through the states of a recorded episode, to the bit; show them, or compare them with its actions' own."""
    address = viewer_address or (LOOPBACK if viewer else None)
    if out is not None:
        if actions or video is not None or address is not None or episode:
            raise typer.BadParameter(
                'writes all episodes: leave out --episode, --actions, --video and --viewer', param_hint='--out'
            )
        raise typer.Exit(take_pictures_anew(folder, out, looks=augment, camera=camera, trust=trust))
    raise typer.Exit(
        replay(
            folder,
            episode,
            actions=actions,
            camera=camera,
            looks=augment,
            video=video,
            viewer=address,
            trust=trust,
        )
    )


def convert_command(folder: _Dataset) -> None:
    """Make the tables, videos and data card of a dataset anew from its episodes, such as after a crash."""
    raise typer.Exit(convert(folder))


def replay(
    folder: Path,
    number: int,
    *,
    actions: bool,
    camera: Path | None,
    looks: Path | None,
    video: Path | None,
    viewer: str | None,
    trust: bool,
) -> int:
    """Replay an episode; returns the exit code.

    Args:
        folder: of the dataset.
        number: of the episode, counted from 0.
        actions: make its steps again with its actions.
        camera: YAML file of the camera of the video.
        looks: YAML file of the looks to change in the video.
        video: the file to write.
        viewer: address `HOST:PORT` at which to show it live; None for not at all.
        trust: run TorchScript files that the dataset names.
    """
    _render_without_display()

    def start() -> int:
        from internutopia.recording.dataset import Dataset
        from internutopia.recording.looks import Looks
        from internutopia.recording.replay import Replay, ReplayCamera
        from internutopia.rendering.video import Video

        for option, given in (('--camera', camera), ('--augment', looks)):
            if given is not None and video is None:
                raise ValueError(f'{option} is for pictures: add --video FILE, or --out NEW')
        if actions and (video is not None or viewer is not None):
            raise ValueError('--actions compares states and shows nothing: leave out --video and --viewer')
        place = None if camera is None else ReplayCamera.read(camera)
        dataset = Dataset(folder)
        if number >= len(dataset):
            raise ValueError(f'--episode {number}: {folder} has {len(dataset)} episodes, counted from 0')
        changed = None if looks is None else Looks.read(looks)
        with Replay(dataset, number, changed, trust) as episode, ExitStack() as stack:
            name = f'episode {number} ({episode.episode.facts["episode_id"]} of the run)'
            if actions:
                drift = episode.repeat_actions()
                print(f'{name}: {drift.identical} of {len(drift.errors)} steps give the same state, to the bit; '
                      f'largest difference of a position: {drift.errors.max(initial=0.0):.3g}')  # fmt: skip
                return 0
            if viewer is not None:
                stack.enter_context(open_viewer(episode.env, viewer))
            every = max(1, round(1.0 / (_RATE * episode.step_dt)))
            film = None if video is None else stack.enter_context(Video(video, 1.0 / (every * episode.step_dt)))
            for step in episode.states():
                if film is not None and step % every == 0:
                    film.add(episode.render(place))
            print(f'{name}: {len(episode.episode.states)} states, the same to the bit')
        if video is not None:
            print(video)
        return 0

    return guarded(f'replay {folder}', start)


def take_pictures_anew(folder: Path, out: Path, *, looks: Path | None, camera: Path | None, trust: bool) -> int:
    """Write a copy of a dataset with pictures of these looks, and of one more camera; returns the exit code."""
    _render_without_display()

    def start() -> int:
        from internutopia.recording.augmentation import augment
        from internutopia.recording.dataset import Dataset
        from internutopia.recording.looks import Looks
        from internutopia.recording.replay import ReplayCamera

        cameras = {} if camera is None else {camera.stem: ReplayCamera.read(camera)}
        changed = None if looks is None else Looks.read(looks)
        new = augment(Dataset(folder), out, changed, cameras, trust=trust)
        print(f'{out}: {len(new)} episodes')
        return 0

    return guarded(f'replay {folder}', start)


def convert(folder: Path) -> int:
    """Rebuild the tables of a dataset; returns the exit code."""

    def start() -> int:
        from internutopia.recording.dataset import Dataset
        from internutopia.recording.export import export as make_tables
        from internutopia.recording.folder_lock import FolderLock

        dataset = Dataset(folder)
        with FolderLock(folder):
            make_tables(dataset)
        print(f'{folder}: {len(dataset)} episodes')
        return 0

    return guarded(f'convert {folder}', start)


def _render_without_display() -> None:
    if sys.platform == 'linux' and not has_display():
        os.environ.setdefault('MUJOCO_GL', 'egl')  # read when the engine is imported
