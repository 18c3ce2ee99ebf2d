"""The commands of 2.x about assets: they say what is there, and keep the asset folder of the user."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import internutopia
from internutopia import download_assets, set_assets_path, setup_conda_pypi
from internutopia.cli.commands import app

PACKAGED = Path(internutopia.__file__).parent / 'assets'


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the asset folder of a user who has none yet."""
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    monkeypatch.delenv('INTERNUTOPIA_ASSETS_PATH', raising=False)
    return tmp_path / 'config' / 'internutopia' / 'assets_path'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An asset folder."""
    (tmp_path / 'assets' / 'scenes').mkdir(parents=True)
    return tmp_path / 'assets'


def asset_path_of_a_new_program() -> str:
    code = 'from internutopia.macros import gm; print(gm.ASSET_PATH)'
    return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_the_asset_folder_is_kept_for_programs_that_start_afterwards(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    assert set_assets_path.main(['assets']) == 0
    assert asset_path_of_a_new_program() == str(folder)
    assert f'asset folder: {folder} (set in ' in capsys.readouterr().out
    monkeypatch.setenv('INTERNUTOPIA_ASSETS_PATH', '/elsewhere')
    assert asset_path_of_a_new_program() == '/elsewhere'
    monkeypatch.delenv('INTERNUTOPIA_ASSETS_PATH')
    assert set_assets_path.main(['--reset']) == set_assets_path.main(['--reset']) == 0
    assert asset_path_of_a_new_program() == str(PACKAGED)


def test_what_is_no_folder_changes_nothing(folder, settings, capsys):
    set_assets_path.main([str(folder)])
    assert set_assets_path.main([str(folder / 'missing')]) == 1
    assert f'{folder / "missing"} is not a folder: nothing was changed' in capsys.readouterr().err
    assert settings.read_text() == f'{folder}\n'


def test_a_folder_that_cannot_be_kept_is_said(folder, tmp_path, capsys):
    (tmp_path / 'config').write_text('a file where the folder of settings should be')
    assert set_assets_path.main([str(folder)]) == 1
    assert 'it cannot be kept' in (text := capsys.readouterr().err) and 'INTERNUTOPIA_ASSETS_PATH' in text


def test_an_unlikely_folder_is_noted(tmp_path, capsys):
    assert set_assets_path.main([str(tmp_path)]) == 0
    assert 'has none of the folders robots, scenes and objects' in capsys.readouterr().err


def test_without_a_path_it_says_which_folder_is_used(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'stdin', None)
    assert set_assets_path.main([]) == 0
    assert capsys.readouterr().out == f'asset folder: {PACKAGED} (built in)\n'
    with pytest.raises(SystemExit):
        set_assets_path.main(['a', '--reset'])


def test_download_assets_says_what_is_there_and_how_to_get_the_rest(folder, capsys):
    assert download_assets.main() == 0
    text = capsys.readouterr().out
    assert 'h1_with_hand' in text and 'apartment.usda' in text and 'does not have' not in text
    assert 'Nothing is downloaded here' in text and 'INTERNUTOPIA_ASSETS_PATH=<folder>' in text
    assert 'internutopia assets get grscenes/home/<scene id>' in text
    (folder / 'scenes' / 'empty.usd').touch()
    set_assets_path.main([str(folder)])
    assert download_assets.main() == 0
    text = capsys.readouterr().out
    assert 'scenes: scenes/empty.usd\n' in text and 'robots (built-in models take their place), objects' in text
    set_assets_path.settings_file().write_text('/nowhere\n')
    download_assets.main()
    assert 'asset folder: /nowhere' in (text := capsys.readouterr().out) and 'it does not exist' in text


def test_the_listing_names_robots_and_scenes_of_the_asset_folder(folder, monkeypatch):
    """GRScenes by their ids, under either name of their folder, once they have a stage."""
    monkeypatch.setenv('INTERNUTOPIA_ASSETS_PATH', str(folder))
    (folder / 'robots' / 'mine').mkdir(parents=True)
    for file in (
        'flat.xml',
        'town/square.usd',
        'town/notes.txt',
        'town/parts/door.usd',
        'GRScenes-100/target_69_new/scenes/MA_usd/start_result_raw.usd',
        'GRScenes-100/target_69_new/scenes/MB_usd/metadata.json',
        'GRScenes-100/commercial_scenes/scenes/MC_usd/start_result_raw.usd',
    ):
        (folder / 'scenes' / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / 'scenes' / file).touch()
    result = CliRunner().invoke(app, ['assets', 'list', '--json'])
    found = json.loads(result.stdout)
    assert found['folder'] == str(folder) and found['set_by'].endswith('INTERNUTOPIA_ASSETS_PATH')
    assert (found['robots'], found['scenes']) == (['mine'], ['scenes/flat.xml', 'scenes/town/square.usd'])
    assert found['grscenes'] == {'home': ['MA'], 'commercial': ['MC']}
    assert found['pack'] == {
        'robots': True,
        'objects': False,
        'scenes/empty.usd': False,
        'scenes/demo_scenes': False,
        'scenes/GRScenes-100': True,
    }
    assert 'scenes/empty.xml' in found['builtin_scenes'] and 'franka' in found['builtin_robots']
    text = CliRunner().invoke(app, ['assets', 'list']).stdout
    assert 'grscenes/home: MA\n' in text and 'grscenes/commercial: MC\n' in text


def test_there_is_nothing_to_set_up(capsys):
    assert setup_conda_pypi.main() == 0
    assert "pip install -e '.[cli]'" in capsys.readouterr().out


@pytest.mark.parametrize('command', ['download_assets', 'setup_conda_pypi', 'set_assets_path'])
def test_they_are_programs(command):
    result = subprocess.run(
        [sys.executable, '-m', f'internutopia.{command}'], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert result.returncode == 0 and result.stdout
