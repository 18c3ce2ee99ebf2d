"""Commands `internutopia replay` and `internutopia convert`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import LOOPBACK, Trust, Viewer, ViewerAddress, number_option, open_viewer
from internutopia.util.bounds import MAX_COUNT
from internutopia.util.imports import import_named

if TYPE_CHECKING:
    from internutopia.recording import Replay, ReplayCamera

_RATE = 15.0  # frames per second of a video, at most
_Dataset = Annotated[Path, typer.Argument(help='Folder of a recorded dataset.', metavar='DIR')]


@command('replay {folder}')
def replay(
    folder: _Dataset,
    episode: Annotated[int, number_option(min=0, max=MAX_COUNT, help='Index of the episode, from 0.')] = 0,
    actions: Annotated[
        bool,
        typer.Option('--actions', help='Step with the recorded actions instead, and report how states deviate.'),
    ] = False,
    camera: Annotated[
        Path | None,
        typer.Option(help='Camera for the video or the new dataset, see docs/datasets.md.', metavar='CAMERA.yaml'),
    ] = None,
    appearance: Annotated[
        Path | None,
        typer.Option(
            '--augment', help='Colors, textures and lights for the video or the new dataset.', metavar='APPEARANCE.yaml'
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help='Write all episodes to a new dataset with newly rendered images.', metavar='NEW'),
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help='Write a real-time video of the episode (.mp4, .gif).', metavar='FILE')
    ] = None,
    viewer: Viewer = False,
    viewer_address: ViewerAddress = None,
    trust: Trust = False,
    module: Annotated[
        str | None, typer.Option(help='Module to import first, with your own terms or classes.', metavar='MODULE')
    ] = None,
) -> int:
    """Replay a recorded episode: its exact states, or its actions."""
    from internutopia.recording import Dataset, Looks, Replay, ReplayCamera, augment

    address = viewer_address or (LOOPBACK if viewer else None)
    if out is not None and (actions or video is not None or address is not None or episode):
        raise typer.BadParameter(
            'writes all episodes: omit --episode, --actions, --video and --viewer', param_hint='--out'
        )
    for option, given in (('--camera', camera), ('--augment', appearance)):
        if given is not None and video is None and out is None:
            raise ValueError(f'{option} applies to images: add --video FILE, or --out NEW')
    if actions and (video is not None or address is not None):
        raise ValueError('--actions compares states and renders nothing: omit --video and --viewer')
    if module is not None:
        import_named(module)
    looks = None if appearance is None else Looks.read(appearance)
    place = None if camera is None else ReplayCamera.read(camera)
    dataset = Dataset(folder)
    if out is not None:
        cameras = {} if camera is None or place is None else {camera.stem: place}
        new = augment(dataset, out, looks, cameras, trust=trust)
        print(f'{out}: {len(new)} episodes')
        return 0
    if episode >= len(dataset):
        raise ValueError(f'--episode {episode}: {folder} has {len(dataset)} episodes, counted from 0')
    with Replay(dataset, episode, looks, trust) as replayed:
        name = f'episode {episode} ({replayed.episode.facts["episode_id"]} of the run)'
        if actions:
            drift = replayed.repeat_actions()
            print(f'{name}: {drift.identical} of {len(drift.errors)} steps give the same state, to the bit; '
                  f'largest difference of a position: {drift.errors.max(initial=0.0):.3g}')  # fmt: skip
            return 0
        _show(replayed, place, video, address)
        print(f'{name}: {len(replayed.episode.states)} states, bitwise identical')
    if video is not None:
        print(video)
    return 0


def _show(replay: Replay, camera: ReplayCamera | None, video: Path | None, address: str | None) -> None:
    """Go through the states of an episode, with a video or a viewer at an address."""
    from internutopia.rendering.video import Video

    with ExitStack() as stack:
        if address is not None:
            stack.enter_context(open_viewer(replay.env, address))
        every = max(1, round(1.0 / (_RATE * replay.step_dt)))
        film = None if video is None else stack.enter_context(Video(video, 1.0 / (every * replay.step_dt)))
        for step in replay.states():
            if film is not None and step % every == 0:
                film.add(replay.render(camera))


@command('convert {folder}')
def convert(folder: _Dataset) -> int:
    """Rebuild the tables, videos and data card of a dataset from its episode files, for example after a crash."""
    from internutopia.recording import Dataset
    from internutopia.recording.dataset import FolderLock
    from internutopia.recording.export import export

    dataset = Dataset(folder)
    with FolderLock(folder):
        export(dataset)
    print(f'{folder}: {len(dataset)} episodes')
    return 0
