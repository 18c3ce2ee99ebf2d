"""Commands `internutopia demo` and `internutopia init`: run files that the package ships, and files to start from."""

from __future__ import annotations

import importlib.util
import keyword
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typing_extensions import override

import internutopia
from internutopia.cli.command import command
from internutopia.util import did_you_mean

_DEFAULT = 'demo'
_FOLDER = Path(internutopia.__file__).parent
_TEMPLATES = _FOLDER / 'templates'
_NEXT = """
next:
  {0} demo --viewer        the same, live in a browser
  {0} list demos           other demos
  {0} list robots          built-in robots; also: list scenes, list tasks
  {0} init my_run.yaml     write a run file of your own
Then read docs/quickstart.md"""
_PACKAGE, _PREFIX = 'my_robots', 'MyRobots'  # names of the package of the template, and of the types in it


def demo_files() -> dict[str, Path]:
    """Return the run files of the demos by name."""
    return {file.stem: file for file in sorted((_FOLDER / 'run_files').glob('*.yaml'))}


def demo_file(name: str) -> Path:
    """Return the run file of a demo. ValueError if there is no demo of this name."""
    files = demo_files()
    if name not in files:
        raise ValueError(f'there is no demo {name!r}; {did_you_mean(name, files)}')
    return files[name]


class DemoCommand(typer.core.TyperCommand):
    """Command whose first argument, the name, may be left out."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (not args[0].startswith('-') or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [_DEFAULT, *args])


def demo(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help='Name of the demo, see `internutopia list demos`.', metavar='NAME')
    ] = _DEFAULT,
    options: Annotated[
        list[str] | None,
        typer.Argument(
            help='Options of `internutopia run`, see `internutopia run --help`.', metavar='[OPTIONS OF RUN]'
        ),
    ] = None,
) -> None:
    """Run a demo, by default `demo`.

    Replaces the results of an earlier run of the demo, except with `--resume` or `--out`.
    """
    try:
        file = demo_file(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    given = options or []
    keeps = any(option.startswith(('--resume', '--out', '--overwrite', '-h', '--help')) for option in given)
    arguments = ['run', str(file), *given, *([] if keeps else ['--overwrite'])]
    program: Any = context.find_root().command
    try:
        exit_code = program.main(arguments, 'internutopia', standalone_mode=False)
    except Exception as error:
        if hasattr(error, 'ctx'):  # a wrong option: the usage to print is that of the command that was typed
            vars(error)['ctx'] = context
        raise
    if not exit_code and not {'-h', '--help', '--quiet'} & set(given):
        print(_NEXT.format('internutopia' if shutil.which('internutopia') else os.path.relpath(sys.argv[0])))
    raise typer.Exit(exit_code)


@command('init')
def init(
    file: Annotated[Path | None, typer.Argument(help='Run file to write.', metavar='MY_RUN.yaml')] = None,
    start_from: Annotated[
        str | None,
        typer.Option('--from', help='Demo to copy; default: a short run with comments.', metavar='DEMO'),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            help='Package to write: a folder with a robot, a controller, tasks, entry points and tests.', metavar='NAME'
        ),
    ] = None,
) -> int:
    """Write a run file or an extension package to start from."""
    if (file is None) == (package is None):
        raise ValueError('expected MY_RUN.yaml to write a run file, or --package NAME to write a package')
    if file is not None:
        write_run_file(file, start_from)
        print(f'{file}\nstart it with: internutopia run {file}')
    if package is not None:
        if start_from is not None:
            raise ValueError('--from applies to run files, not to --package')
        folder = Path(package)
        write_package(folder)
        print(f'{folder}\ninstall it with: pip install --no-build-isolation -e {folder}')
    return 0


def write_run_file(file: Path, start_from: str | None = None) -> None:
    """Write a run file. ValueError if the file exists, or there is no such demo."""
    if file.suffix not in ('.yaml', '.yml'):
        raise ValueError(f'{file}: a run file ends in .yaml')
    source = _TEMPLATES / 'my_run.yaml' if start_from is None else demo_file(start_from)
    text = source.read_text().replace(source.name, file.name)  # in the commands that it names
    if file.exists():
        raise ValueError(f'{file} already exists: use another name')
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_package(folder: Path) -> None:
    """Write a package with the name of its folder. ValueError if the name is invalid or taken."""
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise ValueError(f'--package {name}: a package name has lower-case letters, digits and _, such as my_robots')
    if folder.exists():
        raise ValueError(f'{folder} already exists: use another name')
    if importlib.util.find_spec(name) is not None:
        raise ValueError(f'--package {name}: a module with this name is already installed')
    prefix = ''.join(part.capitalize() for part in name.split('_'))
    template = _TEMPLATES / 'package'
    for source in sorted(template.rglob('*')):
        if source.is_file() and source.suffix != '.pyc':
            target = folder / source.relative_to(template).as_posix().replace(_PACKAGE, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text().replace(_PACKAGE, name).replace(_PREFIX, prefix))
