"""Missing libraries: an adapter says how to get its own, and the rest of the package does not need it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    'module, library', [('sb3', 'stable_baselines3'), ('rsl_rl', 'rsl_rl'), ('rsl_rl', 'tensordict')]
)
def test_an_adapter_names_the_extra(module, library, monkeypatch):
    monkeypatch.delitem(sys.modules, f'internutopia.rl.{module}', raising=False)
    for name in [name for name in sys.modules if name.split('.')[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[rl\]'"):
        __import__(f'internutopia.rl.{module}')


@pytest.mark.slow
def test_the_other_front_doors_load_no_learning_library():
    program = (
        'import sys, internutopia.rl, internutopia.rl.buffers, internutopia.rl.send_recv\n'
        "loaded = {'torch', 'stable_baselines3', 'rsl_rl', 'tensordict'} & set(sys.modules)\n"
        'assert not loaded, loaded'
    )
    subprocess.run([sys.executable, '-c', program], check=True)
