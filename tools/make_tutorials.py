"""Follows a tutorial from top to bottom, as a reader would, and keeps the images that its commands make.

    MUJOCO_GL=egl python tools/make_tutorials.py your_robot    writes the images of docs/tutorials/your_robot.md
    python tools/make_tutorials.py your_robot --quick --out FOLDER    few updates and episodes, for tests

Snippets run one after the other in an empty folder, in this process, and each command in one of its own, as a reader's
do; blocks with `Saved as` below them are files there. A command that ends with `&` runs in the background from its
first line of output on. An image of the page has the name of the file that a command writes.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / 'docs'
BLOCK = re.compile(r'^```(\w+)\n(.*?)^```$(?:\n\nSaved as `([^`]+)`)?', re.MULTILINE | re.DOTALL)
QUICKLY = {  # the last option of a name counts
    'train': ['--iterations', '2'],
    'episodes': ['--count', '2'],
    'evaluate policy': ['--episodes', '2'],
    'policy.py': ['10'],
}
PICTURE = re.compile(r'!\[[^\]]*\]\(\.\./images/tutorials/([^)]+)\)')


def run(line: str, quick: bool, stack: ExitStack) -> None:
    """Run a command, one that ends with `&` until the stack is closed. An error is raised if it fails."""
    print('$', line, flush=True)
    program, *arguments = shlex.split(line.removesuffix('&'))
    if quick:
        arguments += QUICKLY.get(arguments[0], QUICKLY.get(' '.join(arguments[:2]), []))
    assert program in ('internutopia', 'python'), line
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    if not line.endswith('&'):
        subprocess.run(command, check=True)
        return
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    assert process.stdout is not None and process.stdout.readline(), line


def follow(page: Path, quick: bool) -> None:
    """Do what a page says, in the current folder. An error is raised if a command fails."""
    text, names = page.read_text(), {}
    with ExitStack() as stack:
        for block in BLOCK.finditer(text):
            language, source, file = block.groups()
            if file:
                Path(file).write_text(source)
            elif language == 'python':
                before = '\n' * text.count('\n', 0, block.start(2))  # a traceback has the lines of the page
                exec(compile(before + source, str(page), 'exec'), names)
            elif language == 'bash':
                for line in source.replace('\\\n', ' ').splitlines():
                    run(line, quick, stack)


def main() -> None:
    """Follow the page that is named and write its images."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('page', choices=sorted(page.stem for page in (DOCS / 'tutorials').glob('*.md')))
    parser.add_argument('--quick', action='store_true', help='few updates and episodes')
    parser.add_argument('--out', type=Path, default=DOCS / 'images' / 'tutorials', help='folder of the pictures')
    options = parser.parse_args()
    page, pictures = DOCS / 'tutorials' / f'{options.page}.md', options.out.resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)  # modules that the reader writes
        follow(page, options.quick)
        for name in PICTURE.findall(page.read_text()):
            (file,) = Path(folder).rglob(name)
            shutil.copy(file, pictures / name)
        os.chdir(DOCS)


if __name__ == '__main__':
    main()
