"""Pages of the website that lie outside docs/, and links between them (`make docs` checks that all lead somewhere)."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope='module')
def site() -> ModuleType:
    """The hook of MkDocs."""
    spec = importlib.util.spec_from_file_location('docs_site', ROOT / 'tools' / 'docs_site.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ('page', 'link', 'on_site'),
    [
        ('backends.md', 'sensors.md#ray-tracing', 'sensors.md#ray-tracing'),
        ('backends.md', '#measured', '#measured'),
        ('backends.md', '../CONTRIBUTING.md#words', 'contributing.md#words'),
        ('backends.md', '../README.md', 'index.md'),
        ('quickstart.md', '../examples', 'examples.md'),
        ('cluster.md', '../examples/cluster.py', 'examples/cluster.md'),
        ('api/envs.md', '../environments.md', '../environments.md'),
        ('index.md', 'docs/images/envs.webp', 'images/envs.webp'),
        ('index.md', 'LICENSE', 'licence.md'),
        ('evaluation.md', '../examples/lerobot.yaml', 'examples/lerobot.yaml.md'),
        ('benchmarks.md', '../docs/backends.md', 'backends.md'),
        ('examples.md', 'cameras.py', 'examples/cameras.md'),
        ('index.md', 'https://mujoco.org', 'https://mujoco.org'),
    ],
)
def test_links_between_files_become_links_between_pages(site: ModuleType, page: str, link: str, on_site: str):
    here: Any = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    none: Any = None
    assert site.on_page_markdown(f'See [it]({link}).', here, none, none) == f'See [it]({on_site}).'


def test_a_link_to_a_file_without_a_page_is_an_error(site: ModuleType):
    here: Any = SimpleNamespace(file=SimpleNamespace(src_uri='install.md'))
    none: Any = None
    with pytest.raises(PluginError, match=r'docs/install\.md links to \.\./Makefile, which has no page'):
        site.on_page_markdown('See [it](../Makefile).', here, none, none)


def test_files_outside_of_docs_have_pages(site: ModuleType):
    pages = {page: site.content_of(ROOT / file) for file, page in site.PAGES.items()}
    assert pages['index.md'] == (ROOT / 'README.md').read_text()
    assert (ROOT / 'examples' / 'cameras.py').read_text() in pages['examples/cameras.md']
    assert '- [cameras.py](cameras.py): Sixteen Jetbots in sixteen envs find their cube' in pages['examples.md']
    assert 'MIT' in pages['licence.md']
