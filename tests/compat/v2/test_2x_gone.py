"""Names that scripts of InternUtopia 2.2.1 import and that have no meaning here: each says what to use instead.

The names are facts read from that version (github.com/InternRobotics/InternUtopia).
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import internutopia
from internutopia.compat.v2.finder import GONE, Gone
from internutopia.core.datahub import DataHub
from internutopia.core.registries import REGISTRIES
from internutopia.core.registry import look_up
from internutopia_extension import import_extensions

import_extensions()

CORE = 'internutopia.core'
EXT = 'internutopia_extension'
ADVICE = {  # with a word of what its message says to use instead
    ('internutopia.macros', 'macros'): 'gm',
    (f'{CORE}.util', 'AsyncRequest'): 'httpx',
    (f'{CORE}.util.log', 'LogConfig'): 'getLogger',
    (f'{CORE}.util.log', 'log_dict'): 'getLogger',
    (f'{CORE}.datahub', 'ActionData'): 'DataHub',
    (f'{CORE}.datahub', 'IsaacData'): 'DataHub',
    **{
        (f'{CORE}.util.physics_status_util', f'{verb}_{what}_status'): 'get_state'
        for verb in ('get', 'set')
        for what in ('rigidbody', 'articulation')
    },
    (f'{CORE}.util.space', 'get_action_space_by_task'): 'action_space',
    (f'{CORE}.util.space', 'get_observation_space_by_task'): 'observation_space',
    **{
        (f'{CORE}.util.omni_usd_util', name): 'get_obj'
        for name in (
            'compute_path_bbox',
            'get_pick_position',
            'get_grabbed_able_xform_paths',
            'get_world_transform_xform',
            'nearest_xform_from_position',
        )
    },
    (f'{CORE}.util.extensions_utils', 'dump_extensions'): 'without a call',
    (f'{CORE}.util.extensions_utils', 'reload_extensions'): 'without a call',
    (f'{CORE}.util.clear_task', 'clear_stage_by_prim_path'): 'reset',
    (f'{CORE}.util.rsl_rl', 'pickle'): 'load_policy',
    (f'{CORE}.util.rsl_rl', 'normalizer'): 'policy',
    (f'{CORE}.util.chat', 'AgentChat'): 'script',
    (f'{EXT}.interactions.keyboard', 'KeyboardController'): 'KeyboardInteraction',
    (f'{EXT}.interactions.visionpro.visionpro', 'VuerTeleop'): 'InverseKinematicsController',
}


@pytest.mark.parametrize(('module', 'name'), ADVICE)
def test_what_has_no_meaning_here_says_what_to_use(module: str, name: str):
    with pytest.raises(ImportError, match=f'{name} of InternUtopia 2.x is not available: .*{ADVICE[module, name]}'):
        exec(f'from {module} import {name}')
    with pytest.raises(AttributeError):
        getattr(importlib.import_module(module), 'no_such_name')  # noqa: B009


@pytest.mark.parametrize('row', GONE, ids=lambda row: f'{row.place}:{row.names[0]}')
def test_every_row_of_the_table_is_an_error_message(row: Gone):
    for name in row.names:
        message = re.escape(row.message(name))
        if '.' not in row.place:
            with pytest.raises(ValueError, match=message):
                look_up(REGISTRIES[row.place], row.place, name)
        elif row.place.endswith('DataHub'):
            with pytest.raises(AttributeError, match=message):
                getattr(DataHub, name)
        else:
            with pytest.raises(ImportError, match=message):
                getattr(importlib.import_module(row.place), name)


def test_the_table_is_all_that_is_gone():
    folder = Path(internutopia.__file__).parents[1]
    modules = {
        '.'.join(file.relative_to(folder).with_suffix('').parts).removesuffix('.__init__')
        for package in ('internutopia', 'internutopia_extension')
        for file in (folder / package).rglob('*.py')
        if '__getattr__ = raise_if_gone(' in file.read_text()
    }
    without_file = {row.place for row in GONE} - modules - {'controller', f'{CORE}.datahub.DataHub'}
    assert modules < {row.place for row in GONE}
    assert not any(hasattr(importlib.import_module(place), '__file__') for place in without_file)
    assert ADVICE.keys() <= {(row.place, name) for row in GONE for name in row.names}


@pytest.mark.parametrize(
    'module',
    [
        *(f'{CORE}.util.chat.agent_chat', f'{CORE}.datahub.datahub', f'{CORE}.object.object'),
        *(f'{EXT}.interactions.visionpro.visionpro', f'{EXT}.configs.tasks.finite_step_task'),
    ],
)
def test_a_module_without_a_file_can_be_the_first_that_a_script_imports(module: str):
    code = f'import sys, {module}; assert not hasattr(sys.modules["{module}"], "__path__")'
    subprocess.run([sys.executable, '-c', code], check=True)


NAMES = Path(__file__).parents[3] / 'tools' / 'names_of_2x.txt'


@pytest.mark.parametrize('line', NAMES.read_text().splitlines(), ids=lambda line: line.partition(':')[0])
def test_every_public_name_is_there_or_says_what_to_use(line: str):
    module, _, names = line.partition(': ')
    for name in names.split():
        try:
            exec(f'from {module} import {name}')
        except ImportError as error:
            assert f'{name} of InternUtopia 2.x is not available: ' in str(error)


def test_a_class_has_one_identity_under_all_its_paths():
    paths = (f'{EXT}.controllers.{name}' for name in ('ik_controller', 'inverse_kinematics_controller'))
    by_old_path, by_path = (importlib.import_module(path).InverseKinematicsController for path in paths)
    assert by_old_path is by_path
