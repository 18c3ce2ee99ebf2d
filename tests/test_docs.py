"""The documentation: its snippets run, its commands work, its links lead somewhere, its reference is up to date."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from forked_scripts import run_script
from markers import need_physx, slow_but
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.rendering.gl import NoOpenGLError, open_context

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md')),
    *sorted((ROOT / 'docs').rglob('*.md')),
]

TUTORIALS = sorted((ROOT / 'docs' / 'tutorials').glob('*.md'))  # run from top to bottom, snippets and commands
QUICK = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', ROOT / 'docs' / 'quickstart.md']

FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
SAVED_AS = re.compile(r'\nSaved as `([^`]+)`')


def blocks(page: Path, language: str) -> list[re.Match[str]]:
    return [match for match in FENCE.finditer(page.read_text()) if match[1] == language]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if page not in TUTORIALS and blocks(page, language)]


def name_of(value: object) -> str | None:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else None


def prose(page: Path) -> str:
    return FENCE.sub('', page.read_text())


def anchors(page: Path) -> set[str]:
    headings = re.findall(r'^#+ (.*)$', prose(page), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def write_saved(page: Path, folder: Path) -> None:
    """Write the blocks of a page under which there is `Saved as` to files of these names."""
    text = page.read_text()
    for block in FENCE.finditer(text):
        saved = SAVED_AS.match(text, block.end() + 1)
        if saved:
            (folder / saved[1]).write_text(block[2])


def can_render() -> bool:
    try:
        open_context().free()
    except NoOpenGLError:
        return False
    return True


LIBRARIES = ROOT / 'docs' / 'libraries.md'


@pytest.mark.parametrize('block', slow_but(0, of=range(len(blocks(LIBRARIES, 'python')))))
def test_python_snippets_about_libraries_run_alone(block: int, tmp_path: Path):
    script = tmp_path / 'snippet.py'
    script.write_text(blocks(LIBRARIES, 'python')[block][2])
    result = run_script(script, [], tmp_path)
    assert result.returncode == 0, f'{script.read_text()}\n{result.stderr}'


@pytest.mark.nightly
@pytest.mark.parametrize(
    'page', slow_but(*QUICK, of=[page for page in pages_with('python') if page != LIBRARIES]), ids=name_of
)
def test_python_snippets_run_one_after_the_other(page: Path, tmp_path: Path):
    if page.stem == 'sensors' and not can_render():
        pytest.skip('its snippets draw pictures')
    text = page.read_text()
    source = ''
    for block in blocks(page, 'python'):
        line = text.count('\n', 0, block.start(2))
        source += '\n' * (line - source.count('\n')) + block[2]  # a traceback then has the lines of the page
    write_saved(page, tmp_path)
    script = tmp_path / f'{page.stem}.py'
    script.write_text(source)
    if page in QUICK:  # in a process that has imported nothing
        result = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    else:
        result = run_script(script, [], tmp_path, {'PYTHONPATH': str(ROOT)})  # docs/grscenes.md takes homes from it
    assert result.returncode == 0, f'{name_of(page)}, same line numbers:\n{result.stderr}'


COMMANDS = [
    pytest.param(page, commands, marks=() if page in QUICK else pytest.mark.slow)
    for page, commands in sorted({(page, block[2]) for page in pages_with('bash') for block in blocks(page, 'bash')})
]


@pytest.mark.parametrize(('page', 'commands'), COMMANDS, ids=name_of)
def test_commands_work_one_after_the_other(
    page: Path, commands: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_saved(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # modules that a page lets its reader write
    for command in commands.replace('\\\n', ' ').splitlines():
        program, *arguments = shlex.split(command)
        if program == 'make':
            subprocess.run(['make', '--dry-run', *arguments], cwd=ROOT, capture_output=True, check=True)
            continue
        assert program == 'internutopia', f'{name_of(page)}: how shall {command!r} be checked?'
        if (arguments[0] in ('play', 'show') or '--video' in arguments) and not can_render():
            continue
        if arguments[0] == 'compare':
            need_physx()
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f'{command}: {result.output}'


@pytest.mark.nightly
@pytest.mark.parametrize('page', TUTORIALS, ids=name_of)
def test_tutorials_can_be_followed(page: Path, tmp_path: Path):
    if not can_render():
        pytest.skip('they draw pictures')
    tool = [sys.executable, ROOT / 'tools' / 'make_tutorials.py', page.stem, '--quick', '--out', tmp_path]
    result = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f'{name_of(page)}, same line numbers:\n{result.stderr}'
    pictures = {file.name for file in tmp_path.iterdir()}
    assert pictures == set(re.findall(r'images/tutorials/([^)]+)', page.read_text()))


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    for link in LINK.findall(prose(page)):
        file, _, anchor = link.partition('#')
        if '://' in link:
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f'{link}: there is no {target}'
        assert not anchor or anchor in anchors(target), f'{link}: no such heading; there are {sorted(anchors(target))}'


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_no_page_is_bound_to_a_machine(page: Path):
    assert str(ROOT) not in page.read_text()


@pytest.mark.nightly
@pytest.mark.parametrize('name', ['make_reference.py', 'make_porting.py'])
def test_generated_pages_are_what_the_tools_write_on_any_machine(name: str):
    environment = {**os.environ, 'INTERNUTOPIA_ASSETS_PATH': '/somewhere/else', 'INTERNUTOPIA_COMPAT': '2.x'}
    tool = [sys.executable, ROOT / 'tools' / name, '--check']
    result = subprocess.run(tool, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
