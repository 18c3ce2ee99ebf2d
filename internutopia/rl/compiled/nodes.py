"""Nodes: numbers of one env that a kernel computes, each from others; and how each is written in LLVM's language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

TYPES = {
    'bool': 'i1',
    'int32': 'i32',
    'int64': 'i64',
    'uint32': 'i32',
    'uint64': 'i64',
    'float32': 'float',
    'float64': 'double',
}
_FLOAT = {'add': 'fadd', 'subtract': 'fsub', 'multiply': 'fmul', 'divide': 'fdiv'}
_INTEGER = {'add': 'add', 'subtract': 'sub', 'multiply': 'mul', 'left_shift': 'shl'}
_BITS = {'bitwise_and': 'and', 'bitwise_or': 'or', 'bitwise_xor': 'xor', 'logical_and': 'and', 'logical_or': 'or'}
_COMPARED = {  # floats, integers; integers get the sign
    'less': ('olt', 'lt'),
    'less_equal': ('ole', 'le'),
    'greater': ('ogt', 'gt'),
    'greater_equal': ('oge', 'ge'),
    'equal': ('oeq', 'eq'),
    'not_equal': ('une', 'ne'),
}
_INTRINSICS = {
    'sqrt': 'sqrt',
    'absolute': 'fabs',
    'floor': 'floor',
    'ceil': 'ceil',
    'rint': 'nearbyint',
    'exp': 'exp',
    'log': 'log',
    'sin': 'sin',
    'cos': 'cos',
    'power': 'pow',
}
_LIBRARY = {
    'arctan2': 'atan2',
    'arctan': 'atan',
    'arcsin': 'asin',
    'arccos': 'acos',
    'tan': 'tan',
    'tanh': 'tanh',
    'hypot': 'hypot',
}


class UntraceableError(TypeError):
    """Raised if a function does something with traced arrays that cannot be compiled."""


class Node:
    """A number of the type `dtype`: the result of the operation `op` on `args`, a constant, or an input element."""

    __slots__ = ('args', 'dtype', 'op')

    def __init__(self, op: str, dtype: np.dtype[Any], args: Sequence[Any]):
        if dtype.name not in TYPES:
            raise UntraceableError(f'numbers of type {dtype.name}')
        self.op, self.dtype, self.args = op, dtype, args

    def __bool__(self) -> bool:
        raise UntraceableError('its control flow depends on a value')

    def __lt__(self, other: object) -> bool:
        return bool(self)

    def cast(self, dtype: np.dtype[Any]) -> Node:
        """Return a node cast to another type."""
        if dtype == self.dtype:
            return self
        if self.op == 'constant':
            return constant(self.args[0], dtype)
        return Node('cast', dtype, (self,))


def constant(value: Any, dtype: np.dtype[Any]) -> Node:
    """Return a constant node."""
    return Node('constant', dtype, (np.asarray(value).astype(dtype)[()],))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return True if a type is a floating point type."""
    return dtype.kind == 'f'


class Writer:
    """Writer of nodes as lines of LLVM's language, each once."""

    def __init__(self, load: Callable[[Node], str]):
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._load = load
        self._names: dict[Node, str] = {}

    def line(self, text: str) -> str:
        """Add an instruction; returns the name of its result."""
        name = f'%v{len(self.lines)}'
        self.lines.append(f'{name} = {text}')
        return name

    def name(self, node: Node) -> str:
        """Return the name of a node's value; writes the nodes that it depends on first."""
        # not by recursion: long sums would be as deep
        stack = [node]
        while stack:
            each = stack[-1]
            waiting = [arg for arg in each.args if isinstance(arg, Node) and arg not in self._names]
            if each in self._names or waiting:
                stack.pop() if each in self._names else stack.extend(waiting)
                continue
            self._names[each] = self._written(each)
            stack.pop()
        return self._names[node]

    def _written(self, node: Node) -> str:
        if node.op == 'constant':
            return _literal(node.args[0])
        if node.op == 'load':
            return self._load(node)
        names = [self._names[arg] for arg in node.args]
        if node.op == 'cast':
            return self._cast(node.args[0].dtype, node.dtype, names[0])
        if node.op == 'where':
            kind = TYPES[node.dtype.name]
            return self.line(f'select i1 {names[0]}, {kind} {names[1]}, {kind} {names[2]}')
        return self._operation(node.op, node.args[0].dtype, names)

    def _operation(self, op: str, dtype: np.dtype[Any], names: list[str]) -> str:
        kind, x, y = TYPES[dtype.name], names[0], names[-1]
        if is_float(dtype):
            if op in _FLOAT:
                return self.line(f'{_FLOAT[op]} {kind} {x}, {y}')
            if op in _COMPARED:
                return self.line(f'fcmp {_COMPARED[op][0]} {kind} {x}, {y}')
            if op in _INTRINSICS:
                return self._call(f'llvm.{_INTRINSICS[op]}.f{8 * dtype.itemsize}', kind, names)
            if op in _LIBRARY:
                return self._call(_LIBRARY[op] + ('f' if dtype.itemsize == 4 else ''), kind, names)
            if op in ('maximum', 'minimum', 'negative', 'square', 'isnan', 'isfinite', 'remainder', 'sign'):
                return getattr(self, f'_{op}')(dtype, kind, x, y)
        elif op in _COMPARED:
            sign = '' if op in ('equal', 'not_equal') else 's' if dtype.kind == 'i' else 'u'
            return self.line(f'icmp {sign}{_COMPARED[op][1]} {kind} {x}, {y}')
        elif op in _BITS and (dtype.kind == 'b' or op.startswith('bitwise')):
            return self.line(f'{_BITS[op]} {kind} {x}, {y}')
        elif op in ('invert', 'logical_not') and (dtype.kind == 'b' or op == 'invert'):
            return self.line(f'xor {kind} {x}, -1')
        elif op in _INTEGER and dtype.kind != 'b':
            return self.line(f'{_INTEGER[op]} {kind} {x}, {y}')
        elif op == 'right_shift':
            return self.line(f'{"ashr" if dtype.kind == "i" else "lshr"} {kind} {x}, {y}')
        raise UntraceableError(f'{op} of {dtype.name}')

    def _call(self, function: str, kind: str, names: Sequence[str]) -> str:
        self.declared.add(f'declare {kind} @{function}({", ".join([kind] * len(names))})')
        return self.line(f'call {kind} @{function}({", ".join(f"{kind} {name}" for name in names)})')

    def _negative(self, _: Any, kind: str, x: str, y: str) -> str:
        return self.line(f'fneg {kind} {x}')

    def _square(self, _: Any, kind: str, x: str, y: str) -> str:
        return self.line(f'fmul {kind} {x}, {x}')

    def _isnan(self, _: Any, kind: str, x: str, y: str) -> str:
        return self.line(f'fcmp uno {kind} {x}, {x}')

    def _isfinite(self, dtype: np.dtype[Any], kind: str, x: str, y: str) -> str:
        size = self._operation('absolute', dtype, [x])
        return self.line(f'fcmp olt {kind} {size}, {_literal(dtype.type(np.inf))}')

    def _maximum(self, _: Any, kind: str, x: str, y: str, order: str = 'ogt') -> str:
        # like numpy's: not a number if either is none
        first = self.line(f'fcmp {order} {kind} {x}, {y}')
        none = self.line(f'fcmp uno {kind} {x}, {x}')
        either = self.line(f'or i1 {first}, {none}')
        return self.line(f'select i1 {either}, {kind} {x}, {kind} {y}')

    def _minimum(self, dtype: np.dtype[Any], kind: str, x: str, y: str) -> str:
        return self._maximum(dtype, kind, x, y, 'olt')

    def _sign(self, dtype: np.dtype[Any], kind: str, x: str, y: str) -> str:
        zero, one, minus = (_literal(dtype.type(value)) for value in (0.0, 1.0, -1.0))
        positive = self.line(f'fcmp ogt {kind} {x}, {zero}')
        negative = self.line(f'fcmp olt {kind} {x}, {zero}')
        rest = self.line(f'select i1 {negative}, {kind} {minus}, {kind} {x}')
        return self.line(f'select i1 {positive}, {kind} {one}, {kind} {rest}')

    def _remainder(self, dtype: np.dtype[Any], kind: str, x: str, y: str) -> str:
        # numpy's has the sign of the divisor
        zero = _literal(dtype.type(0.0))
        rest = self.line(f'frem {kind} {x}, {y}')
        some = self.line(f'fcmp une {kind} {rest}, {zero}')
        below = self.line(f'fcmp olt {kind} {rest}, {zero}')
        divisor = self.line(f'fcmp olt {kind} {y}, {zero}')
        differ = self.line(f'xor i1 {below}, {divisor}')
        shifted = self.line(f'and i1 {some}, {differ}')
        return self.line(f'select i1 {shifted}, {kind} {self.line(f"fadd {kind} {rest}, {y}")}, {kind} {rest}')

    def _cast(self, old: np.dtype[Any], new: np.dtype[Any], x: str) -> str:
        before, after = TYPES[old.name], TYPES[new.name]
        if new.kind == 'b':
            compare = 'fcmp une' if is_float(old) else 'icmp ne'
            return self.line(f'{compare} {before} {x}, {_literal(old.type(0))}')
        if is_float(old) and is_float(new):
            verb = 'fpext' if new.itemsize > old.itemsize else 'fptrunc'
        elif is_float(old):
            verb = 'fptosi' if new.kind == 'i' else 'fptoui'
        elif is_float(new):
            verb = 'sitofp' if old.kind == 'i' else 'uitofp'
        elif before == after:
            return x
        elif old.kind == 'b' or new.itemsize > old.itemsize:
            verb = 'sext' if old.kind == 'i' else 'zext'
        else:
            verb = 'trunc'
        return self.line(f'{verb} {before} {x} to {after}')


def _literal(value: Any) -> str:
    """Return a constant in LLVM's language; floating point numbers as the bits of a double."""
    if isinstance(value, np.bool_):
        return 'true' if value else 'false'
    if isinstance(value, np.integer):
        return str(int(value))
    return f'0x{np.float64(value).view(np.uint64):016X}'
