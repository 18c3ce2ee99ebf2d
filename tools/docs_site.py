"""Documentation site: pages of the repository that lie outside docs/, and links that work on the site and on GitHub.

A hook of MkDocs (`mkdocs.yml`). Links in Markdown files are those between files of the repository; here they become
links between pages. The examples get a page each, with the program on it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {  # file of the repository: page of the site
    'README.md': 'index.md',
    'docs/README.md': 'overview.md',
    'CONTRIBUTING.md': 'contributing.md',
    'CHANGELOG.md': 'changelog.md',
    'LICENSE': 'licence.md',
    'SECURITY.md': 'security_policy.md',
    'benchmarks/README.md': 'benchmarks.md',
    'Dockerfile': 'dockerfile.md',
    'examples': 'examples.md',
    **{f'examples/{file.name}': f'examples/{file.stem}.md' for file in sorted((ROOT / 'examples').glob('*.py'))},
    **{f'examples/{file.name}': f'examples/{file.name}.md' for file in sorted((ROOT / 'examples').glob('*.yaml'))},
}
_LANGUAGES = {'.py': 'python', '.yaml': 'yaml'}
_FILES = {page: file for file, page in PAGES.items()}
_LINK = re.compile(r'(?<=\]\()([^)\s#]+)(?=[)#])')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside of docs/."""
    for file, page in PAGES.items():
        files.append(File.generated(config, page, content=content_of(ROOT / file)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    here = page.file.src_uri
    file = _FILES.get(here, f'docs/{here}')
    folder = file if (ROOT / file).is_dir() else posixpath.dirname(file)

    def on_site(link: re.Match[str]) -> str:
        if '://' in link[0]:
            return link[0]
        target = posixpath.normpath(posixpath.join(folder, link[0]))
        if target not in PAGES and not target.startswith('docs/'):
            raise PluginError(f'{file} links to {link[0]}, which has no page on the site')  # MkDocs would keep the link
        target = PAGES.get(target, target.removeprefix('docs/'))
        return posixpath.relpath(target, posixpath.dirname(here) or '.')

    return _LINK.sub(on_site, markdown)


def content_of(file: Path) -> str:
    """A page with what a file or folder of the repository holds."""
    if file.suffix == '.md':
        return file.read_text()
    if file.is_dir():
        programs = sorted(file.glob('*.py'))
        return '# Examples\n\n' + '\n'.join(f'- [{each.name}]({each.name}): {_summary(each)}' for each in programs)
    title = 'Licence' if file.name == 'LICENSE' else file.name
    return f'# {title}\n\n```{_LANGUAGES.get(file.suffix, "text")}\n{file.read_text()}```\n'


def _summary(program: Path) -> str:
    return program.read_text().removeprefix('"""').split('"""')[0].split('\n\n')[0].replace('\n', ' ').strip()
