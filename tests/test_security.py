"""Calls by which data may become code: each is on the list below, and what may reach it is on the page about it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ('internutopia', 'internutopia_extension')
RISKY = re.compile(
    r"""
    ((builtins\.)?(eval|exec|compile|__import__)
    |importlib\.(import_module|__import__|metadata\.entry_points)
    |importlib\.(util\.(find_spec|spec_from_file_location|spec_from_loader|module_from_spec)|machinery\.\w*FileLoader)
    |(runpy|code|codeop|pty)\.\w+
    |sys\.(path|meta_path|path_hooks)
    |(.+\.)?(pickle|_pickle|cloudpickle|dill|marshal|jsonpickle)\.(load|loads|Unpickler)
    |(shelve|dbm)\.\w+|(.+\.)?joblib\.load|pandas\.read_pickle
    |torch\.(load|jit\.load|hub\.\w+|package\.\w+|utils\.cpp_extension\.\w+|ops\.load_library)
    |yaml\.(load|load_all|full_load\w*|unsafe_load\w*|(?!C?SafeLoader)\w*Loader|YAMLObject)
    |subprocess\.(Popen|run|call|check_call|check_output|getoutput|getstatusoutput)
    |os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|startfile)|asyncio\.create_subprocess_\w+
    |ctypes\.(\w*DLL|cdll|CFUNCTYPE|PYFUNCTYPE)
    |multiprocessing\.connection\.(Listener|Client)
    |gymnasium\.(make|make_vec|spec|pprint_registry|vector\.make)
    |webbrowser\.\w+
    |(stable_baselines3|sb3_contrib)\..*\.?load(_from_zip_file|_from_pkl)?
    |.+\.(from_binary_path|mj_loadModel|mj_loadPluginLibrary|mj_loadAllPluginLibraries)
    |.+\.(exec_module|load_module|register_custom_ops_library|parse_from_binary|create_mcjit_compiler)
    )""",
    re.VERBOSE,
)
SAFE = {'allow_pickle': 'False', 'weights_only': 'True', 'shell': 'False'}
"""What these arguments may be."""

NUMBERS = 'nothing but numbers and arrays is read'
OUR_OBJECTS = 'copies of objects of this process'
OUR_CODE = 'text and libraries of our own code; names out of data are no part of it'
OUR_NAMES = 'names stand in our own code, or were typed; whether a package is there is asked without importing it'
REASONS = NUMBERS, OUR_OBJECTS, OUR_CODE, OUR_NAMES
LISTED: dict[str, dict[str, dict[str, int]]] = {
    'TorchScript': {
        'internutopia/rl/policy.py': {'torch.jit.load': 2},
        'internutopia/rl/dry_run/inputs.py': {'torch.jit.load': 1},
    },
    'Stable-Baselines3 model': {
        'internutopia/rl/sb3_model.py': {'pickle.Unpickler': 1, 'pickle.loads': 1, 'torch.load': 1},
    },
    'Task named by a file': {
        'internutopia/rl/registration.py': {'gymnasium.make': 1},
        'internutopia/rl/task_envs.py': {'importlib.import_module': 1},
        'internutopia/rl/training/tasks.py': {'importlib.import_module': 2},
    },
    'Module that you name': {
        'internutopia/util/imports.py': {'importlib.import_module': 1, 'sys.path': 2},
    },
    'Installed packages': {
        'internutopia/config/typed.py': {'importlib.metadata.entry_points': 1},
        'internutopia/util/imports.py': {'importlib.metadata.entry_points': 3},
        'internutopia/core/runner/local.py': {'importlib.metadata.entry_points': 1},
        'internutopia/gymnasium_ids.py': {
            'importlib.metadata.entry_points': 1,
            'spec.loader.exec_module': 2,
            'sys.meta_path': 2,
        },
    },
    'Programs started by name': {
        'internutopia/util/child_process.py': {
            'ctypes.CDLL': 1,
            'pickle.load': 2,
            'pickle.loads': 2,
            'subprocess.Popen': 2,
            'sys.path': 1,
        },
        'internutopia/remote/local.py': {'subprocess.Popen': 1},
        'internutopia/remote/server/process.py': {'pickle.loads': 1},
        'internutopia/remote/server/worker.py': {'pickle.loads': 1},
    },
    'Cache folder': {
        'internutopia/model/scene_cache.py': {'mujoco.MjModel.from_binary_path': 1},
    },
    'Scene from a server': {
        'internutopia/remote/workers.py': {'mujoco.MjModel.from_binary_path': 1},
    },
    'Ray cluster': {
        'internutopia/cluster/pipe_link.py': {'pickle.loads': 1},
        'internutopia/cluster/worker.py': {'pickle.loads': 3},
        'internutopia/cluster/worker_process.py': {'pickle.loads': 1},
    },
    NUMBERS: {
        'internutopia/compat/v2/walking.py': {'torch.load': 1},
        'internutopia/rl/training/checkpoints.py': {'torch.load': 1},
    },
    OUR_OBJECTS: {
        'internutopia/core/episodes/queue.py': {'pickle.loads': 2},
        'internutopia/util/errors.py': {'pickle.loads': 1},
    },
    OUR_CODE: {
        'internutopia/util/memory.py': {'ctypes.CDLL': 1},
        'internutopia/engines/physx/runtime.py': {'ctypes.CDLL': 1},
        'internutopia/rl/compiled/kernel.py': {'ctypes.CFUNCTYPE': 1, 'llvmlite.binding.create_mcjit_compiler': 1},
    },
    OUR_NAMES: {
        'internutopia/bench/apis.py': {'importlib.util.find_spec': 1},
        'internutopia/cli/demo.py': {'importlib.util.find_spec': 1},
        'internutopia/cli/models.py': {'importlib.import_module': 1},  # of the ids that are registered
        'internutopia/cli/run.py': {'importlib.util.find_spec': 1},
        'internutopia/compat/omni/finder.py': {
            'importlib.import_module': 1,
            'importlib.util.find_spec': 1,
            'sys.meta_path': 5,
        },
        'internutopia/compat/omni/replicator.py': {'importlib.util.find_spec': 1},
        'internutopia/compat/v2/finder.py': {'importlib.import_module': 1, 'sys.meta_path': 2},
        'internutopia/config/yaml_file.py': {'importlib.util.find_spec': 1},
        'internutopia/evaluation/protocols/__init__.py': {'importlib.import_module': 1},
        'internutopia/rendering/gl.py': {'importlib.import_module': 1},
        'internutopia/util/imports.py': {'importlib.import_module': 1},
        'internutopia/engines/isaac/launch.py': {'importlib.import_module': 1},
        'internutopia/recording/recorder.py': {'importlib.util.find_spec': 1},
        'internutopia/rl/compiled/step.py': {'importlib.util.find_spec': 1},
        'internutopia/rl/training/rsl_rl.py': {'importlib.import_module': 1},
        'internutopia/rl/training/train.py': {'importlib.util.find_spec': 3},
        'internutopia/templates/package/tests/test_my_robots.py': {'gymnasium.make': 1},
        'internutopia_extension/__init__.py': {'importlib.import_module': 1, 'importlib.util.find_spec': 1},
    },
}
"""By row of the page, or by the reason why a call is none: files, and how often they say what."""


def names(tree: ast.AST) -> Iterator[str]:
    """Full names of all that a module speaks of, such as `numpy.load` for `np.load`."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                root = each.name.partition('.')[0]
                known[each.asname or root] = each.name if each.asname else root
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {each.asname or each.name: f'{node.module}.{each.name}' for each in node.names}
    for node in ast.walk(tree):
        parts = list[str]()
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            yield '.'.join([known.get(node.id, node.id), *parts])
        elif parts:
            yield '.'.join(['?', *parts])


def unsafe_arguments(tree: ast.AST) -> Iterator[str]:
    """Arguments that let readers of arrays unpickle, and programs be started by a shell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in SAFE and ast.unparse(node.value) != SAFE[node.arg]:
            yield f'{node.arg}={ast.unparse(node.value)}'
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'torch.load':
            if not any(each.arg == 'weights_only' for each in node.keywords):
                yield 'torch.load without weights_only'


def risks(source: str) -> Counter[str]:
    """How often a module says what may run code."""
    tree = ast.parse(source)
    return Counter([*(name for name in names(tree) if RISKY.fullmatch(name)), *unsafe_arguments(tree)])


def rows() -> set[str]:
    """What the page says that can run code."""
    _, _, text = (ROOT / 'docs' / 'security.md').read_text().partition('\n## What can run code\n')
    return set(re.findall(r'^\| \*\*(.+?)\*\*', text.partition('\n## ')[0], re.MULTILINE))


@pytest.mark.nightly
def test_every_call_that_may_run_code_is_listed() -> None:
    found = dict[str, Counter[str]]()
    for package in PACKAGES:
        for file in (ROOT / package).rglob('*.py'):
            if counts := risks(file.read_text()):
                found[file.relative_to(ROOT).as_posix()] = counts
    listed = defaultdict[str, Counter[str]](Counter)
    for files in LISTED.values():
        for file, counts in files.items():
            listed[file] += Counter(counts)
    changed = {file: (found.get(file), listed.get(file)) for file in found.keys() | listed.keys()}
    wrong = {file: (has, said) for file, (has, said) in changed.items() if has != said}
    assert not wrong, f'may run code: list it, and what guards it from files stands in docs/security.md: {wrong}'


def test_what_files_can_reach_is_on_the_page() -> None:
    assert LISTED.keys() - {*REASONS} <= rows() <= LISTED.keys()


@pytest.mark.parametrize(
    ('source', 'name'),
    [
        ('import numpy as np\nnp.load(file, allow_pickle=True)', 'allow_pickle=True'),
        ('import torch\ntorch.load(file)', 'torch.load without weights_only'),
        ('from torch import jit\njit.load(file)', 'torch.jit.load'),
        ('def f():\n    from pickle import loads as read\n    return map(read, files)', 'pickle.loads'),
        ('from ray import cloudpickle as c\nc.loads(data)', 'ray.cloudpickle.loads'),
        ('import yaml\nyaml.load(text, yaml.Loader)', 'yaml.Loader'),
        ('import importlib as i\ni.import_module(name)', 'importlib.import_module'),
        ('import gymnasium as gym\ngym.make(env_id)', 'gymnasium.make'),
        ('exec(text)', 'exec'),
        ('import sys\nsys.path.append(folder)', 'sys.path'),
        ('import mujoco\nmujoco.MjModel.from_binary_path(file)', 'mujoco.MjModel.from_binary_path'),
        ('import subprocess as s\ns.run(text, shell=True)', 'shell=True'),
        ('import os\nos.system(text)', 'os.system'),
        ('from stable_baselines3 import PPO\nPPO.load(file)', 'stable_baselines3.PPO.load'),
    ],
)
def test_a_new_call_is_found(source: str, name: str) -> None:
    assert risks(source)[name] == 1
    assert not risks('import re, json, yaml, numpy as np\nre.compile(a), json.loads(b), np.load(c), yaml.SafeLoader')
