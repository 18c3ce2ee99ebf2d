"""`internutopia init`: what it writes works as it is."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest
from runs import results_in, run
from typer.testing import CliRunner

from internutopia.cli import commands
from internutopia.cli.demo import demo_files

ROOT = Path(__file__).parents[2]


def init(*arguments: str):
    return CliRunner().invoke(commands.app, ['init', *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_run_file_runs(folder: Path):
    assert init('first.yaml').exit_code == 0
    assert '#   internutopia run first.yaml --viewer' in Path('first.yaml').read_text()
    result = run('first.yaml', '--no-picture')
    assert result.exit_code == 0, result.output
    distances = [line['metrics']['distance'] for line in results_in(folder / 'out' / 'first')]
    # the path is 2 m long and the last point counts from 0.1 m; a circle at 0.3 m/s for 4 s is 1.2 m
    assert distances == pytest.approx([1.75, 1.2] * 4, abs=0.1)


def test_copies_of_demos():
    for name, file in demo_files().items():
        assert init(f'{name}_copy.yaml', '--from', name).exit_code == 0
        copy = Path(f'{name}_copy.yaml').read_text()
        assert copy.splitlines()[1:] == file.read_text().splitlines()[1:]  # the first names the file


@pytest.mark.slow
def test_nothing_is_overwritten(folder: Path):
    Path('mine.yaml').write_text('mine')
    Path('my_robots').mkdir()
    for arguments, message in [
        (('mine.yaml',), 'mine.yaml already exists'),
        (('other.yaml', '--from', 'wlaking'), "did you mean 'walking'"),
        (('run.txt',), 'a run file ends in .yaml'),
        (('--package', 'my_robots'), 'my_robots already exists'),
        (('--package', 'my-robots'), 'such as my_robots'),
        (('--package', 'numpy'), 'a module with this name is already installed'),
        (('--package', 'robots', '--from', 'demo'), '--from applies to run files'),
        ((), 'MY_RUN.yaml to write a run file, or --package NAME'),
        (('a.yaml', '--package', 'b'), 'MY_RUN.yaml to write a run file, or --package NAME'),
    ]:
        result = init(*arguments)
        assert result.exit_code == 2 and message in result.stderr, arguments
    assert sorted(path.name for path in folder.iterdir()) == ['mine.yaml', 'my_robots']
    assert Path('mine.yaml').read_text() == 'mine' and not list(Path('my_robots').iterdir())


@pytest.mark.nightly
def test_the_package_passes_its_tests_and_runs_beside_its_folder(folder: Path):
    """Where scripts stand, its folder has its name, too, and must not hide what is installed."""
    pytest.importorskip('pip')
    assert init('--package', 'acme_bots').exit_code == 0
    assert not any('my_robots' in text.lower().replace('my_run', '') for text in texts(folder / 'acme_bots'))
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder / 'venv'], check=True)
    (packages,) = (folder / 'venv').glob('lib/python*/site-packages')
    (packages / 'libraries.pth').write_text('\n'.join([*site.getsitepackages(), str(ROOT)]))

    def python(*arguments: str) -> str:
        command = [folder / 'venv' / 'bin' / 'python', *arguments]
        environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    python(*'-m pip install --no-index --no-deps --no-build-isolation --quiet -e acme_bots'.split())
    (folder / 'script.py').write_text('import acme_bots\nacme_bots.import_extensions()\nprint(acme_bots.__file__)\n')
    assert Path(python('script.py').strip()).is_relative_to(folder / 'acme_bots')
    assert '4 passed' in python('-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'acme_bots')
    python('-m', 'internutopia', 'run', 'acme_bots/run.yaml', '--no-picture')
    lines = results_in(folder / 'out' / 'run')
    # 0.8 m at 0.3 m/s are 133 steps of 0.02 s; the drive lags behind
    assert len(lines) == 4 and all(line['terminated'] and 133 <= line['steps'] < 145 for line in lines)


def texts(package: Path) -> list[str]:
    return [str(file) + file.read_text() for file in package.rglob('*') if file.is_file()]
