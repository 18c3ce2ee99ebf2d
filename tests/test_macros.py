import os
import subprocess
import sys
from pathlib import Path

import pytest

import internutopia
from internutopia.macros import MacroDict


def asset_path_in_new_process(**environment: str) -> str:
    code = 'from internutopia.macros import gm; print(gm.ASSET_PATH)'
    environment = {key: value for key, value in os.environ.items() if key != 'INTERNUTOPIA_ASSETS_PATH'} | environment
    return subprocess.run([sys.executable, '-c', code], env=environment, capture_output=True, text=True).stdout.strip()


def test_assets_are_those_of_the_package_by_default():
    assert asset_path_in_new_process() == str(Path(internutopia.__file__).parent / 'assets')
    assert asset_path_in_new_process(INTERNUTOPIA_ASSETS_PATH='') == asset_path_in_new_process()


def test_environment_variable_wins():
    assert asset_path_in_new_process(INTERNUTOPIA_ASSETS_PATH='/data/assets') == '/data/assets'


def test_setting_can_be_assigned_until_it_is_read():
    settings = MacroDict(ASSET_PATH='/a')
    settings.ASSET_PATH = '/b'
    assert settings.ASSET_PATH == '/b'
    with pytest.raises(AttributeError, match="'ASSET_PATH' was read already"):
        settings.ASSET_PATH = '/c'
    assert settings.ASSET_PATH == '/b'


def test_unknown_settings_are_refused_with_close_matches():
    settings = MacroDict(ASSET_PATH='/a')
    with pytest.raises(AttributeError, match="no setting 'ASSETS_PATH'; did you mean 'ASSET_PATH'"):
        settings.ASSETS_PATH = '/b'
    with pytest.raises(AttributeError, match="no setting 'ASSETS_PATH'; did you mean 'ASSET_PATH'"):
        _ = settings.ASSETS_PATH
