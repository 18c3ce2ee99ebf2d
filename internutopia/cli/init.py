"""Command `internutopia init`."""

from __future__ import annotations

import importlib.util
import keyword
from pathlib import Path

import internutopia
from internutopia.cli.command import guarded
from internutopia.cli.demo import demo_file

_TEMPLATES = Path(internutopia.__file__).parent / 'templates'
_PACKAGE, _PREFIX = 'my_robots', 'MyRobots'  # names of the package of the template, and of the types in it


def init(file: Path | None, start_from: str | None, package: str | None) -> int:
    """Write a run file or a package to start from; returns the exit code.

    Args:
        file: run file to write.
        start_from: demo that it is a copy of; None means a short run with comments.
        package: name of the package to write; its folder gets this name.
    """

    def start() -> int:
        if (file is None) == (package is None):
            raise ValueError('what shall be written? MY_RUN.yaml for a run file, --package NAME for a package')
        if file is not None:
            write_run_file(file, start_from)
            print(f'{file}\nstart it with: internutopia run {file}')
        if package is not None:
            if start_from is not None:
                raise ValueError('--from is for run files: a package has one of its own')
            folder = Path(package)
            write_package(folder)
            print(f'{folder}\ninstall it with: pip install --no-build-isolation -e {folder}')
        return 0

    return guarded('init', start)


def write_run_file(file: Path, start_from: str | None = None) -> None:
    """Write a run file. ValueError if the file exists, or there is no such demo."""
    if file.suffix not in ('.yaml', '.yml'):
        raise ValueError(f'{file}: a run file ends in .yaml')
    source = _TEMPLATES / 'my_run.yaml' if start_from is None else demo_file(start_from)
    text = source.read_text().replace(source.name, file.name)  # in the commands that it names
    if file.exists():
        raise ValueError(f'{file} is there already: use another name')
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_package(folder: Path) -> None:
    """Write a package with the name of its folder. ValueError if the name is invalid or taken."""
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise ValueError(f'--package {name}: a package is named in lower case letters, digits and _, such as my_robots')
    if folder.exists():
        raise ValueError(f'{folder} is there already: use another name')
    if importlib.util.find_spec(name) is not None:
        raise ValueError(f'--package {name}: a module of this name is installed already')
    prefix = ''.join(part.capitalize() for part in name.split('_'))
    template = _TEMPLATES / 'package'
    for source in sorted(template.rglob('*')):
        if source.is_file() and source.suffix != '.pyc':
            target = folder / source.relative_to(template).as_posix().replace(_PACKAGE, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text().replace(_PACKAGE, name).replace(_PREFIX, prefix))
