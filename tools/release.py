"""Build the wheel and the source distribution of a release into dist/, and check the wheel on every Python it is for.

The wheel is built from the source distribution. On each Python (`classifiers` of pyproject.toml) that is found on PATH
or below pyenv, it is installed into a fresh environment with the packages of an index, as a user would, and runs a demo
in an empty folder. One that fails ends the program, and nothing is uploaded: `twine upload dist/*` is a decision of its
own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / 'dist'


def main() -> None:
    """Build and check; exit code 1 if there is no Python to check on."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, '-m', 'build', '--outdir', DIST, ROOT], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = DIST.glob('*.whl')
    checked = []
    for version in supported_versions((ROOT / 'pyproject.toml').read_text()):
        python = find_python(version)
        if python is None:
            print(f'Python {version}: not found, not checked')
            continue
        check(wheel, python)
        checked.append(version)
        print(f'Python {version}: installed, demo ran')
    if not checked:
        sys.exit('no Python was found to check the wheel on')
    print(
        *(f'{file.relative_to(ROOT)} {file.stat().st_size / 1e6:.1f} MB' for file in sorted(DIST.iterdir())), sep='\n'
    )


def supported_versions(project: str) -> list[str]:
    """Return the versions of Python that a pyproject.toml names in its classifiers, such as `['3.11', '3.12']`."""
    return re.findall(r'Programming Language :: Python :: (3\.\d+)', project)


def find_python(version: str) -> str | None:
    """Return the interpreter of a version, from PATH or pyenv; None if there is none that runs."""
    pyenv = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')) / 'versions'
    candidates = [shutil.which(f'python{version}'), *sorted(pyenv.glob(f'{version}.*/bin/python'))]
    for candidate in filter(None, candidates):  # a shim of pyenv may lead nowhere
        if subprocess.run([candidate, '--version'], capture_output=True, check=False).returncode == 0:
            return str(candidate)
    return None


def check(wheel: Path, python: str) -> None:
    """Install a wheel into a fresh environment of a Python, and run a demo there."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, '-m', 'venv', f'{folder}/venv'], check=True)
        subprocess.run(
            [f'{folder}/venv/bin/pip', 'install', '--quiet', '--no-compile', f'{wheel}[cli,policies]'], check=True
        )
        demo = [f'{folder}/venv/bin/internutopia', *'demo --steps 30 --out short --quiet'.split()]
        subprocess.run(demo, cwd=folder, check=True)
        assert (Path(folder) / 'short' / 'overview.png').is_file()


if __name__ == '__main__':
    main()
