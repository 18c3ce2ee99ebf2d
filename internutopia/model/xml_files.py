"""XML files, read within the bounds of `asset_bounds`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from internutopia.model.asset_bounds import NestingBounds, check_file


def read_xml(path: Path) -> Element:
    """Read the root element of a file. ValueError, naming the file, if it is not XML, too large or nested too deep."""
    check_file(path, 'text_size')
    bounds, parser = NestingBounds(path), ElementTree.iterparse(path, ('start', 'end'))
    root: Element | None = None
    try:
        for event, element in parser:
            if event == 'end':
                bounds.end()
                continue
            bounds.begin()
            root = element if root is None else root
    except (ElementTree.ParseError, LookupError, UnicodeError) as error:
        raise ValueError(f'{path}: not an XML document: {error}') from error
    assert root is not None  # the parser takes nothing without an element
    return root
