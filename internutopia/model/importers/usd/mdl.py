"""MDL text: the materials that a `.mdl` file defines, as trees of calls.

Read are definitions of values: `material NAME(parameters) = EXPRESSION;`, where an expression is made of numbers,
strings, names, calls, selectors (`.tint`) and operators. Functions, `let` blocks, annotations (`[[ ]]`) and imports are
passed over: what shaders compute is not computed here.

The language: NVIDIA Material Definition Language 1.7, language specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from internutopia.model.asset_files import check_file

LARGEST_MDL = 1 << 20
"""Bytes of a `.mdl` file that are read; those of materials have some thousand."""
_DEEPEST = 100  # calls inside each other
_MOST_TOKENS = 100_000  # those of materials have some hundred
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFdD]?)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)
    |(?P<comment>/\*)
    |(?P<sign>\[\[|\]\]|<=|>=|==|!=|&&|\|\||::|[][(){}<>.,;:=?*/%+!~^&|@#$-])""",
    re.VERBOSE | re.DOTALL,
)
_CLOSED_BY = {'(': ')', '{': '}', '[': ']', '[[': ']]'}
_OPERATORS = frozenset(('+', '-', '*', '/', '%', '<', '>', '<=', '>=', '==', '!=', '&&', '||', '?', ':'))
_END = 'the file ends too early'


@dataclass(frozen=True)
class Name:
    """Name by itself: a parameter or a constant."""

    value: str


@dataclass(frozen=True)
class Call:
    """A call; `name` is the last part of the callee (`KooMtl` of `::KooPbr::KooMtl`).

    A selector is a call of that name (`.tint`), operators are one of `operator` with all operands. Names of
    `arguments` are empty where they are given by position.
    """

    name: str
    arguments: tuple[tuple[str, Node], ...] = ()


Node = float | str | Name | Call


@dataclass
class Material:
    """A material: defaults of its parameters, and its definition, None if that is computed (`let`)."""

    parameters: dict[str, Node] = field(default_factory=dict)
    body: Node | None = None


def read_mdl(file: Path) -> dict[str, Material]:
    """Read the materials of a file; returns them by name.

    Raises:
        ValueError: It is no readable text, too large or no MDL; the message names the file and the line.
    """
    check_file(file)
    try:
        with file.open('rb') as content:
            data = content.read(LARGEST_MDL + 1)
    except OSError as error:
        raise ValueError(f'{file}: cannot be read ({error.strerror})') from error
    if len(data) > LARGEST_MDL:
        raise ValueError(f'{file}: more than the {LARGEST_MDL:,} bytes that are read of a .mdl file')
    if b'\0' in data:
        raise ValueError(f'{file}: not a text')
    parser = _Parser(file, data.decode('utf-8-sig', errors='replace'))  # comments may be in any encoding
    return dict(parser.materials())


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Parser:
    def __init__(self, file: Path, text: str):
        self._file, self._text = file, text
        self._tokens = self._scan()
        self._next = self._after = _Token('end', '', 0)
        self._advance()
        self._advance()

    def materials(self) -> Iterator[tuple[str, Material]]:
        """Parse every definition of a material at the top level."""
        while self._next.kind != 'end':
            if self._next.text in _CLOSED_BY:
                self._skip()
            elif self._take().text == 'material' and self._next.kind == 'name':
                yield self._take().text, self._material()

    def _material(self) -> Material:
        material = Material()
        if self._next.text == '(':
            material.parameters = self._parameters()
        if self._next.text == '[[':
            self._skip()
        if self._next.text == '{':
            return material  # a function
        self._expect('=')
        if self._next.text == 'let':
            self._skip_to(';')
        else:
            material.body = self._expression()
        self._expect(';')
        return material

    def _parameters(self) -> dict[str, Node]:
        """Parse defaults of the parameters in brackets; `*` are those of the material that is called."""
        found: dict[str, Node] = {}
        self._expect('(')
        while self._next.text != ')':
            name = ''
            while self._next.text not in ('=', ',', ')', '[['):
                if self._next.text in _CLOSED_BY:
                    self._skip()  # the size of an array
                else:
                    name = self._take().text
            if self._accept('='):
                found[name] = self._expression()
            if self._next.text == '[[':
                self._skip()
            if not self._accept(','):
                break
        self._expect(')')
        return found

    def _expression(self, depth: int = 0) -> Node:
        """Parse an expression; operators have no precedence: they are not computed, but their operands are found."""
        if depth > _DEEPEST:
            raise self._error(f'more than {_DEEPEST} expressions inside each other')
        operands = [self._operand(depth)]
        while self._next.text in _OPERATORS and self._next.kind == 'sign':
            self._take()
            operands.append(self._operand(depth))
        return operands[0] if len(operands) == 1 else Call('operator', tuple(('', each) for each in operands))

    def _operand(self, depth: int) -> Node:
        negative = False
        while self._next.text in ('-', '+', '!', '::', '.'):  # the latter two begin a name
            negative ^= self._take().text == '-'
        token = self._take()
        node: Node
        if token.kind == 'number':
            node = float(token.text.rstrip('fFdD'))
        elif token.kind == 'string':
            parts = [token.text[1:-1]]
            while self._next.kind == 'string':
                parts.append(self._take().text[1:-1])
            node = re.sub(r'\\(.)', r'\1', ''.join(parts))
        elif token.text == '(':
            node = self._expression(depth + 1)
            self._expect(')')
        elif token.kind == 'name':
            node = self._named(token.text.rpartition('::')[2], depth)
        else:
            raise self._error(f'{token.text!r} where a value should be', token)
        while self._next.text in ('.', '['):
            if self._next.text == '[':
                self._skip()
            else:
                self._take()
                node = Call(f'.{self._take().text}', (('', node),))
        return -node if negative and isinstance(node, float) else node

    def _named(self, name: str, depth: int) -> Node:
        if name in ('true', 'false'):
            return float(name == 'true')
        if self._next.text == '[':
            self._skip()  # of an array: `float[](...)`
        if not self._accept('('):
            return Name(name)
        arguments: list[tuple[str, Node]] = []
        while self._next.text != ')':
            key = ''
            if self._next.kind == 'name' and self._after.text == ':':
                key = self._take().text
                self._take()
            arguments.append((key, self._expression(depth + 1)))
            if not self._accept(','):
                break
        self._expect(')')
        return Call(name, tuple(arguments))

    def _skip(self) -> None:
        """Skip brackets and their content."""
        first = self._next
        open_ones: list[str] = []
        while True:
            token = self._take(since=first)
            if token.kind == 'sign' and token.text in _CLOSED_BY:
                open_ones.append(_CLOSED_BY[token.text])
            elif open_ones and token.text == open_ones[-1]:
                open_ones.pop()
            elif token.text == ']]' and open_ones[-2:] == [']', ']']:  # two arrays that end together
                del open_ones[-2:]
            if not open_ones:
                return

    def _skip_to(self, sign: str) -> None:
        while self._next.text != sign:
            if self._next.text in _CLOSED_BY:
                self._skip()
            else:
                self._take()

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._error(f'{self._next.text!r} where {sign!r} should be' if self._next.text else _END)

    def _accept(self, sign: str) -> bool:
        if self._next.kind != 'sign' or self._next.text != sign:
            return False
        self._take()
        return True

    def _take(self, since: _Token | None = None) -> _Token:
        token = self._next
        if token.kind == 'end':
            raise self._error(f'{_END} inside {since.text!r} of line {self._line(since)}' if since else _END)
        self._advance()
        return token

    def _advance(self) -> None:
        self._next, self._after = self._after, next(self._tokens, self._after)

    def _scan(self) -> Iterator[_Token]:
        place = count = 0
        while place < len(self._text):
            found = _TOKEN.match(self._text, place)
            if found is None or found.lastgroup == 'comment':  # one without an end
                raise self._error(f'{self._text[place]!r} is no MDL', _Token('', '', place))
            if found.lastgroup and found.lastgroup != 'space':
                yield _Token(found.lastgroup, found[0], place)
                count += 1
            if count > _MOST_TOKENS:
                raise self._error(f'more than the {_MOST_TOKENS:,} words and signs that are read of a .mdl file')
            place = found.end()
        yield _Token('end', '', place)

    def _line(self, token: _Token) -> int:
        return self._text.count('\n', 0, token.start) + 1

    def _error(self, what: str, token: _Token | None = None) -> ValueError:
        return ValueError(f'{self._file}:{self._line(token or self._next)}: {what}')
