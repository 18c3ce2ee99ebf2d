"""`internutopia assets get` against a stand-in for the hub: whole, resumed, refused. The real hub was never reached."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from archives import FIRST, LINK, ROOT, SECOND, dataset, in_parts, zipped
from hub_stand_in import Hub, served

from benchmarks.homes import write_home
from internutopia.asset_tools.description import describe
from internutopia.asset_tools.grscenes import Progress, get_scene
from internutopia.asset_tools.hub import REVISION
from internutopia.asset_tools.split_zip import Part, SplitZip

pytest.importorskip('huggingface_hub')

FOLDER = 'scenes/GRScenes-100'
PACK = Path(FOLDER) / 'home_scenes'
SIZE = 40_000  # of the parts of the archive of homes
TOKEN = 'hf_of_the_tests'


def hub_of(files: Mapping[str, str | bytes], **faults: object) -> Hub:
    parts = in_parts(zipped(files), SIZE)
    names = [*(f'home_scenes.z{k + 1:02}' for k in range(len(parts) - 1)), 'home_scenes.zip']
    content = {f'{FOLDER}/{name}': part for name, part in zip(names, parts, strict=True)}
    shops = {path.replace(ROOT, 'target_30_new/'): data for path, data in files.items()}
    content[f'{FOLDER}/commercial_scenes.zip'] = zipped(shops)
    return Hub(content, **faults)  # pyright: ignore[reportArgumentType]


# Runs the commands that it reads: `huggingface_hub` takes HF_ENDPOINT from the environment when it is imported.
DRIVER = """
import json, os, sys
from typer.testing import CliRunner
from internutopia.cli.commands import app
for line in sys.stdin:
    arguments, variables = json.loads(line)
    result = CliRunner().invoke(app, ['assets', *arguments], env=variables)
    error = result.exception if not isinstance(result.exception, SystemExit) else None
    print(json.dumps([result.exit_code, result.stdout, result.stderr + repr(error or '').strip("'")]), flush=True)
"""


def environment(folder: Path, endpoint: str) -> dict[str, str]:
    """That of a user who has nothing yet, with a hub."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith('HF_')}
    return ours | {
        'HF_ENDPOINT': endpoint,
        'HF_HOME': str(folder / 'hf'),
        'XDG_CONFIG_HOME': str(folder / 'config'),
    }


class Driver:
    """A process in which commands run one after the other."""

    def __init__(self, folder: Path, endpoint: str):
        self.process = subprocess.Popen(
            [sys.executable, '-c', DRIVER],
            env=environment(folder, endpoint),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        assert self.process.stdin and self.process.stdout
        print(json.dumps([arguments, variables]), file=self.process.stdin, flush=True)
        code, out, errors = json.loads(self.process.stdout.readline())
        return code, out, errors


@dataclass
class Commands:
    """Commands `internutopia assets` of a user with an asset folder and a hub."""

    assets: Path
    endpoint: str
    driver: Driver

    def __call__(self, *arguments: str, **variables: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        return self.driver.run(*arguments, **{'INTERNUTOPIA_ASSETS_PATH': str(self.assets), **variables})

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Run one in a process of its own."""
        own = environment(self.assets.parent, self.endpoint) | {'INTERNUTOPIA_ASSETS_PATH': str(self.assets)}
        command = [sys.executable, '-m', 'internutopia', 'assets', *arguments]
        return subprocess.Popen(command, env=own | variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def files(self) -> dict[str, bytes | str]:
        """Contents by path below the folder of homes; of links, where they lead."""
        root = self.assets / PACK
        paths = [path for path in root.rglob('*') if '.getting' not in path.parts]
        return {
            path.relative_to(root).as_posix(): f'{LINK}{path.readlink()}' if path.is_symlink() else path.read_bytes()
            for path in paths
            if path.is_symlink() or path.is_file()
        }

    def identities(self) -> set[int]:
        """Those of the files that are whole, wherever they lie; they would be others if they were written again."""
        paths = [path for path in self.assets.rglob('*') if path.is_file() and path.name != 'lock']
        return {path.stat().st_ino for path in paths if path.suffix != '.part'}


def expected(*scenes: str) -> dict[str, bytes | str]:
    """What there must be after a `get` of these."""
    gone = ['unused', *({FIRST, SECOND} - set(scenes)), *(() if SECOND in scenes else ('lamp',))]
    files = {path.removeprefix(ROOT): content for path, content in dataset().items()}
    files = {path: content for path, content in files.items() if not any(part in path for part in gone)}
    for path, content in files.items():
        if path.endswith('/Materials') and not str(content).startswith(LINK):
            files[path] = f'{LINK}{content}'  # it was a link before somebody made a text of it
    return {
        path: content.encode() if isinstance(content, str) and not content.startswith(LINK) else content
        for path, content in files.items()
    }


@pytest.fixture(scope='module')
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, str, Driver]]:
    """A hub, its address, and a process that uses it."""
    hub = hub_of(dataset())
    with served(hub) as endpoint:
        driver = Driver(tmp_path_factory.mktemp('driver'), endpoint)
        yield hub, endpoint, driver
        driver.process.kill()
        driver.process.communicate()


@pytest.fixture
def hub(service: tuple[Hub, str, Driver]) -> Hub:
    """The hub, without faults and without a past."""
    vars(service[0]).update(vars(hub_of(dataset())))
    return service[0]


@pytest.fixture
def assets(service: tuple[Hub, str, Driver], hub: Hub, tmp_path: Path) -> Commands:
    (tmp_path / 'assets').mkdir()
    return Commands(tmp_path / 'assets', *service[1:])


def test_a_scene_comes_with_what_it_needs_and_nothing_else(hub: Hub, assets: Commands) -> None:
    code, out, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 0
    assert errors.splitlines()[0] == 'not in the archive (materials of Omniverse, Omni*.mdl, never are): ./gone.png'
    assert assets.files() == expected(FIRST)
    assert hub.sent < 300_000  # of 700,000, most of which is a texture that no scene has
    scene = assets.assets / PACK / f'scenes/{FIRST}_usd'
    assert out.splitlines()[-2:] == [str(scene / f'start_result_{kind}.usd') for kind in ('navigation', 'raw')]
    box = describe(scene / 'start_result_raw.usd').world.colliders
    assert [collider.size for collider in box] == [pytest.approx([0.5, 0.5, 0.5])]  # found through the links

    before = hub.sent
    code, out, _ = assets('get', f'grscenes/home/{SECOND}_usd', '--revision', 'main')  # either form of the id
    assert code == 0 and assets.files() == expected(FIRST, SECOND)
    assert hub.sent - before < 70_000  # table of contents, lamp and scene

    before = hub.sent
    assert assets('get', f'grscenes/home/{SECOND}')[1].startswith('all of it was there')
    assert hub.sent - before < 70_000

    code, out, _ = assets('list')
    assert f'grscenes/home: {FIRST}, {SECOND}' in out and 'grscenes/commercial: none' in out


def test_shops_and_archives_on_this_machine(hub: Hub, assets: Commands, tmp_path: Path) -> None:
    for name, content in hub.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    for source in (tmp_path, tmp_path / FOLDER):
        assert assets('get', f'grscenes/home/{FIRST}', '--from', str(source))[0] == 0
    assert assets.files() == expected(FIRST) and hub.sent == 0
    assert assets('get', f'grscenes/commercial/{FIRST}')[0] == 0
    assert (assets.assets / FOLDER / f'commercial_scenes/scenes/{FIRST}_usd/start_result_raw.usd').is_file()
    (tmp_path / FOLDER / 'home_scenes.z02').unlink()
    code, _, errors = assets('get', f'grscenes/home/{SECOND}', '--from', str(tmp_path))
    assert code == 2 and 'home_scenes.zip: the archive has' in errors
    code, _, errors = assets('get', f'grscenes/home/{SECOND}', '--from', str(assets.assets))
    assert code == 2 and 'no archive home_scenes.zip in' in errors


def test_a_folder_unpacked_by_hand_is_used_and_nothing_in_it_is_replaced(assets: Commands) -> None:
    own = assets.assets / FOLDER / 'target_69_new'
    edited = own / 'Materials/KooPbr.mdl'
    edited.parent.mkdir(parents=True)
    edited.write_text('mine')
    code, _, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 0 and edited.read_text() == 'mine'
    assert f'of another size than in the archive, left as they are: {edited}' in errors
    assert (own / f'scenes/{FIRST}_usd/start_result_raw.usd').is_file()
    assert not (assets.assets / PACK).exists()


def test_it_goes_on_after_connections_that_were_cut(hub: Hub, assets: Commands) -> None:
    hub.cuts = (0, 3)
    assert assets('get', f'grscenes/home/{FIRST}')[0] == 0 and assets.files() == expected(FIRST)
    assert hub.count > len(hub.ranges)


def test_it_goes_on_after_a_hub_that_refused_midway(hub: Hub, assets: Commands) -> None:
    hub.refuse_at = 8
    code, _, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 2 and 'may not be read (HTTP 403)' in errors and assets.identities()
    check_it_goes_on(hub, assets)


@pytest.mark.nightly
@pytest.mark.parametrize('requests', [3, 8, 10])
def test_it_goes_on_after_it_was_killed(hub: Hub, assets: Commands, requests: int) -> None:
    hub.stop_at = requests
    process = assets.start('get', f'grscenes/home/{FIRST}')
    assert hub.stopped.wait(120)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    hub.stop_at = None
    check_it_goes_on(hub, assets)


def check_it_goes_on(hub: Hub, assets: Commands) -> None:
    """After a `get` that did not end: nothing is half, no scene is there, and what is there is not read again."""
    hub.refuse_at = None
    assert 'grscenes/home: none' in assets('list')[1]
    there, whole = assets.files(), expected(FIRST)
    assert there.items() <= whole.items() and there != whole
    kept = assets.identities()
    assert assets('get', f'grscenes/home/{FIRST}')[0] == 0
    assert assets.files() == whole
    assert kept <= assets.identities()


@pytest.mark.parametrize(
    ('faults', 'arguments', 'said'),
    [
        ({'error': (401, 'GatedRepo')}, (), 'is gated: accept its terms there in a browser; set HF_TOKEN'),
        ({'error': (403, '')}, (), 'may not be read (HTTP 403): set HF_TOKEN'),
        ({'error': (404, 'RepoNotFound')}, (), 'no such dataset or file (HTTP 404); is HF_ENDPOINT right'),
        ({}, ('--revision', 'v9'), "has no revision 'v9'; --revision main is the newest"),
        ({'revisions': ('main',)}, (), f'has no revision {REVISION!r}'),
        ({'files': {'README.md': b''}}, (), 'no folder scenes/GRScenes-100'),
        ({'files': {f'{FOLDER}/other.zip': b''}}, (), 'no archive home_scenes.zip in'),
        ({'files': {f'{FOLDER}/home_scenes.zip': b'<html>' * 99}}, (), 'home_scenes.zip: not a zip archive'),
    ],
)
def test_what_the_hub_refuses_is_one_line(hub, assets, faults, arguments, said) -> None:
    for name, value in faults.items():
        setattr(hub, name, value)
    code, out, errors = assets('get', f'grscenes/home/{FIRST}', *arguments)
    assert (code, out) == (2, '') and said in errors
    assert len(errors.splitlines()) == 1, errors
    assert not assets.files()


def test_tokens_are_those_of_the_hub(hub: Hub, assets: Commands) -> None:
    hub.token = TOKEN
    assert 'set HF_TOKEN to a token of yours' in assets('get', f'grscenes/home/{FIRST}')[2]
    assert 'the token in use does not open it' in assets('get', f'grscenes/home/{FIRST}', HF_TOKEN='hf_wrong')[2]
    assert assets('get', f'grscenes/home/{FIRST}', HF_TOKEN=TOKEN)[0] == 0


@pytest.mark.parametrize(
    'endpoint', ['http://127.0.0.1:9', pytest.param('http://nowhere.invalid', marks=pytest.mark.slow)]
)
def test_no_network_and_a_wrong_endpoint(assets: Commands, endpoint: str) -> None:
    process = assets.start('get', f'grscenes/home/{FIRST}', HF_ENDPOINT=endpoint)
    errors = process.communicate()[1]
    assert process.returncode == 2 and len(errors.splitlines()) == 1
    assert f'{endpoint}/datasets/InternRobotics/GRScenes does not answer as it should (ConnectError' in errors
    assert 'check the network and HF_ENDPOINT' in errors


def test_names_that_are_wrong(assets: Commands, tmp_path: Path) -> None:
    close = FIRST[:-2] + 'C8'
    for name, said in (
        (f'grscenes/home/{close}', f'there is no scene {close!r} among the 2; did you mean {FIRST!r}'),
        (f'grscenes/hom/{FIRST}', "got 'grscenes/hom/MAAAAAAAAAAAAAABAAAAAAA8'; did you mean 'grscenes/home'"),
        (FIRST, 'expected grscenes/<home or commercial>/<scene id>'),
        ('grscenes/home', 'which scene? grscenes/home/<scene id>; `internutopia assets list --hub` lists them'),
    ):
        code, _, errors = assets('get', name)
        assert code == 2 and said in errors and len(errors.splitlines()) == 1, errors
    assert assets('list', '--hub')[1].split() == [
        f'grscenes/{kind}/{scene}' for kind in ('home', 'commercial') for scene in (FIRST, SECOND)
    ]
    code, _, errors = assets('get', f'grscenes/home/{FIRST}', INTERNUTOPIA_ASSETS_PATH='')
    assert code == 2 and 'you have no asset folder of your own: set one with' in errors
    code, _, errors = assets('get', f'grscenes/home/{FIRST}', '--to', str(tmp_path / 'none'))
    assert code == 2 and 'none does not exist; create it' in errors
    assert not assets.files()


def test_a_full_disk_is_said_and_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(dataset())
    archive = SplitZip([Part('home_scenes.zip', len(data), lambda start, end: data[start:end])])
    with monkeypatch.context() as patch:
        patch.setattr(shutil, 'disk_usage', lambda _: SimpleNamespace(free=10))
        with pytest.raises(ValueError, match='GB more are needed for this step, 1e-08 GB are free; make room'):
            get_scene(FIRST, archive, tmp_path / 'homes')
    write_bytes, written = Path.write_bytes, 0

    def write(file: Path, content: bytes) -> int:
        nonlocal written
        written += len(content)
        if written > 20_000:
            write_bytes(file, content[:10])
            raise OSError(errno.ENOSPC, 'No space left on device', str(file))
        return write_bytes(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, 'write_bytes', write)
        with pytest.raises(OSError, match='No space left on device'):
            get_scene(FIRST, archive, tmp_path / 'homes')
    assert not (tmp_path / 'homes' / 'scenes').exists()
    reports: list[Progress] = []
    found = get_scene(FIRST, archive, tmp_path / 'homes', reports.append)
    assert [stage.name for stage in found.stages] == ['start_result_navigation.usd', 'start_result_raw.usd']
    for path, content in expected(FIRST).items():
        place = tmp_path / 'homes' / path
        assert (f'{LINK}{place.readlink()}' if place.is_symlink() else place.read_bytes()) == content
    last = reports[-1]
    assert (last.files, last.bytes) == (last.files_needed, last.bytes_needed) == found.read
    assert [report.bytes for report in reports] == sorted(report.bytes for report in reports)


@pytest.mark.parametrize('path', ['../../../../evil', '/../evil', '..\\evil'])
def test_an_archive_cannot_write_elsewhere(hub: Hub, assets: Commands, path: str) -> None:
    hub.files = hub_of(dataset() | {f'{ROOT}scenes/{FIRST}_usd/{path}': 'evil'}).files
    code, _, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 2 and 'is outside its folder; it is not unpacked' in errors
    assert not list(assets.assets.parent.rglob('*evil*')) and not assets.files()


def test_links_that_lead_out_are_refused(hub: Hub, assets: Commands) -> None:
    hub.files = hub_of(dataset() | {f'{ROOT}scenes/{FIRST}_usd/Materials': f'{LINK}../../../../../outside'}).files
    code, _, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 2 and 'a link to a target outside the folder' in errors
    assert not (assets.assets / PACK / 'scenes').exists()


@pytest.mark.parametrize('links', ['symlink', pytest.param('text', marks=pytest.mark.slow)])
def test_a_home_of_the_form_of_grscenes_arrives_whole(hub: Hub, assets: Commands, tmp_path: Path, links) -> None:
    """Also out of an archive in which somebody made texts of the links, which USD cannot follow."""
    home = write_home(tmp_path / 'home', 'small', seed=5, links=links)
    files = {
        f'{ROOT}{path.relative_to(home.folder).as_posix()}': f'{LINK}{path.readlink()}'
        if path.is_symlink()
        else path.read_bytes()
        for path in home.folder.rglob('*')
        if path.is_symlink() or path.is_file()
    }
    parts = in_parts(zipped(files), 1 << 20)
    names = [*(f'home_scenes.z{k + 1:02}' for k in range(len(parts) - 1)), 'home_scenes.zip']
    hub.files = {f'{FOLDER}/{name}': part for name, part in zip(names, parts, strict=True)}
    code, out, _ = assets('get', f'grscenes/home/{home.navigation.parent.name}')
    assert code == 0 and len(stages := out.splitlines()[-2:]) == 2
    for stage in stages:
        code, text, _ = assets('check', stage, '--json')
        assert code == 0 and json.loads(text)['missing'] == []
    assert json.loads(assets('check', stages[0], '--json')[1])['meshes'] == len(home.meshes)  # the interaction stage


@pytest.mark.nightly
def test_two_at_once_do_not_write_to_the_same_folder(hub: Hub, assets: Commands) -> None:
    hub.stop_at = 8
    first = assets.start('get', f'grscenes/home/{FIRST}')
    assert hub.stopped.wait(120)
    hub.stop_at = None
    code, _, errors = assets('get', f'grscenes/home/{FIRST}')
    assert code == 2 and 'another `internutopia assets get` is writing to' in errors
    first.kill()
    first.communicate()
