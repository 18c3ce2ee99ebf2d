import subprocess
import sys

import pytest

HEAVY = ['mujoco', 'pxr', 'torch', 'matplotlib', 'ray', 'gymnasium', 'numpy']


@pytest.mark.slow
def test_configs_load_nothing_heavy():
    code = (
        'import sys, internutopia, internutopia.config, internutopia_extension.configs;'
        f'print([name for name in {HEAVY} if name in sys.modules])'
    )
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == '[]'
