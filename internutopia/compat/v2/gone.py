"""Names of InternUtopia 2.x that have no meaning here: one table, `gone.txt`, with what to use instead.

Using one of them is an error with that text. `docs/porting.md` shows the same table (`tools/make_porting.py`).
Modules that held nothing else have no file: `internutopia.compat.v2.finder` makes them when they are imported.

In the table, what to use instead is followed by indented lines with a place and its names.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from internutopia.util.conventions import GONE_NAMES


@dataclass(frozen=True)
class Gone:
    """Names that 2.x had in one place, a module, a class or a registry (`'controller'`), and what to use instead."""

    place: str
    names: tuple[str, ...]
    instead: str

    def message(self, name: str) -> str:
        """Return the error message for one of the names."""
        what = f'{self.place}.{name}' if '.' in self.place else f'{self.place} type {name!r}'
        return f'{what} of InternUtopia 2.x is not available: {self.instead}'


def _read(file: Path) -> list[Gone]:
    table, instead = dict[tuple[str, str], tuple[str, ...]](), ''
    for indented, lines in groupby(file.read_text(encoding='utf-8').splitlines(), lambda line: line.startswith(' ')):
        if not indented:
            instead = ' '.join(lines)
            continue
        for line in lines:
            place, names = line.strip().split(': ')
            table[place, instead] = (*table.get((place, instead), ()), *names.split())
    return [Gone(place, names, instead) for (place, instead), names in table.items()]


GONE = _read(Path(__file__).with_suffix('.txt'))
"""All of them."""


def register() -> None:
    """Register the messages; may be called again."""
    for row in GONE:
        GONE_NAMES[row.place].update({name: row.message(name) for name in row.names})
