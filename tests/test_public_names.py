"""Public names: what the packages in `PACKAGES` export, and what that loads."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from internutopia.util.imports import lazy

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    'internutopia',
    'internutopia.navigation',
    'internutopia.recording',
    'internutopia.rl',
    'internutopia.remote',
)
OLD_PATHS = {  # scripts of 2.x import these; both are the same object
    'Config': 'internutopia.config',
    'SimConfig': 'internutopia.config',
    'TaskCfg': 'internutopia.config',
    'Env': 'internutopia.core.vec_env',
    'BaseController': 'internutopia.core.robot.controller',
    'BaseObject': 'internutopia.core.object',
    'BaseRobot': 'internutopia.core.robot.robot',
    'BaseSensor': 'internutopia.core.sensor.sensor',
    'BaseTask': 'internutopia.core.task',
    'BaseMetric': 'internutopia.core.task.metric',
    'IScene': 'internutopia.core.scene.scene',
    'IArticulation': 'internutopia.core.robot.articulation',
    'IRigidBody': 'internutopia.core.robot.rigid_body',
    'ArticulationAction': 'internutopia.core.robot.articulation_action',
}


@pytest.mark.parametrize('package', PACKAGES)
def test_every_public_name_is_there(package: str):
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__, key=lambda name: (name.islower(), name))
    for name in module.__all__:
        assert getattr(module, name).__doc__, name
        assert name in dir(module)


def test_the_paths_of_2x_lead_to_the_same_objects():
    internutopia = importlib.import_module('internutopia')
    for name, module in OLD_PATHS.items():
        assert getattr(importlib.import_module(module), name) is getattr(internutopia, name)
    assert importlib.import_module('internutopia.core.gym_env').Env is internutopia.GymEnv


def test_the_packages_load_what_is_used_only():
    code = (
        'import json, sys\n'
        'import internutopia; import internutopia.remote; bare = set(sys.modules)\n'
        'from internutopia import Config, SimConfig, TaskCfg; configs = set(sys.modules)\n'
        'print(json.dumps([sorted(bare), sorted(configs)]))'
    )
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    bare, configs = (set(names) for names in json.loads(result.stdout))
    assert not bare & {'pydantic', 'numpy', 'internutopia.config', 'internutopia.rl'}
    assert 'pydantic' in configs and not configs & {'numpy', 'gymnasium', 'mujoco', 'torch'}


def test_the_api_pages_have_every_public_name():
    pages = ''.join(page.read_text() for page in (ROOT / 'docs' / 'api').glob('*.md'))
    shown = set(re.findall(r'^::: (\S+)$', pages, re.MULTILINE))
    public = {f'{package}.{name}' for package in PACKAGES for name in importlib.import_module(package).__all__}
    twice = {f'internutopia.{name}' for name in ('VectorEnv', 'list_tasks')}
    assert public - shown == twice and {name.replace('internutopia', 'internutopia.rl') for name in twice} <= shown
    assert [name for name in shown - public if not name.startswith('internutopia.rl.')] == []  # adapters are modules


def test_a_name_that_is_not_there_is_said():
    for package in PACKAGES:
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Envs'"):
            getattr(importlib.import_module(package), 'Envs')  # noqa: B009 - pyright knows that it is not there


def test_lazy_names_are_imported_when_they_are_used():
    get, names = lazy(__name__, {'deque': 'collections', 'Table': 'collections:OrderedDict', 'x': 'no_such_module'})
    assert 'deque' in names() and 'Table' in names()
    for name, real in {'deque': 'deque', 'Table': 'OrderedDict'}.items():
        assert get(name) is getattr(importlib.import_module('collections'), real)
    with pytest.raises(ModuleNotFoundError, match='no_such_module'):
        get('x')
    with pytest.raises(ImportError, match='needs no_such_module: pip install'):
        lazy(__name__, {'x': 'no_such_module'}, extra='rl')[0]('x')


def programs() -> Iterator[tuple[str, str]]:
    """The examples, and the snippets of the documentation, with where they are."""
    for file in sorted((ROOT / 'examples').glob('*.py')):
        yield file.name, file.read_text()
    for page in (ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))):
        for snippet in re.findall(r'^```python\n(.*?)^```$', page.read_text(), re.MULTILINE | re.DOTALL):
            yield page.name, snippet


def test_docs_and_examples_import_public_names_from_where_they_are_public():
    exported = {name for package in PACKAGES[:2] for name in importlib.import_module(package).__all__}
    others = set()
    for where, program in programs():
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith('internutopia.core'):
                others |= {(where, alias.name) for alias in node.names if alias.name in exported}
    of_2x = {('from_2x.md', name) for name in ('Config', 'Env', 'SimConfig')}  # a script as it was written for 2.x
    assert others == of_2x
