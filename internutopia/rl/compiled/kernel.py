"""Kernel: traced computations as machine code, made by LLVM for this processor, that runs over envs.

`Inputs` hands out traced arrays that stand for rows of arrays, and remembers which. After code has computed with them,
a `Kernel` is what computes the same for real: outputs, and what was written into inputs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.rl.compiled.nodes import TYPES, Node, Writer
from internutopia.rl.compiled.traced import Traced, cast, nodes_of

_MEMORY = {'bool': 'i8'}  # a bool takes a byte
# No row depends on what is written to another one, so several rows may be computed at once
_OWN_ROW = ', !llvm.access.group !1'
_ROWS_AT_ONCE = [
    '!0 = distinct !{!0, !2, !3}',
    '!1 = distinct !{}',
    '!2 = !{!"llvm.loop.parallel_accesses", !1}',
    '!3 = !{!"llvm.loop.vectorize.enable", i1 true}',
]
_ROW_BY_ROW = ['!0 = distinct !{!0, !2}', *_ROWS_AT_ONCE[1:3]]  # LLVM would print that it cannot
_Store = tuple[int, int, Any]  # of a node, to a source, at an offset in its row


Source = NDArray[Any] | Callable[[], NDArray[Any]]
"""An array with a row for each env, or for each slot of a batch; or a function that returns the current one."""


@dataclass(frozen=True)
class Input:
    """An array that a kernel reads, and maybe writes."""

    source: Source
    by_slot: bool
    traced: Traced
    before: np.ndarray  # its nodes before anybody wrote to it


class Inputs:
    """All arrays that a kernel reads."""

    def __init__(self) -> None:
        self.all: list[Input] = []
        self._writer = Writer(lambda node: '')

    def add(self, source: Source, by_slot: bool = False, written: bool = False) -> Traced:
        """Add a traced array `(1, ...)` for one `(n, ...)` with a row per env or slot, that may be `written` to."""
        array, index = _array_of(source), len(self.all)
        row = np.empty((1, *array.shape[1:]), object)
        strides = array.strides[1:]
        for place in np.ndindex(*array.shape[1:]):
            offset = sum(step * stride for step, stride in zip(place, strides, strict=True))
            row[0, *place] = Node('load', array.dtype, (index, offset))
        traced = Traced.of(row, array.dtype)
        traced.flags.writeable = written
        self.all.append(Input(source, by_slot, traced, row.copy()))
        return traced

    def check(self, value: Any) -> None:
        """Raise UntraceableError if there is no machine code for a traced value."""
        if isinstance(value, Traced):
            for node in nodes_of(value).flat:
                self._writer.name(node)


class Kernel:
    """A traced computation as a function; rows of different envs or slots share no memory that is written.

    Args:
        inputs: what was read, and maybe written.
        outputs: traced arrays `(1, ...)`, and the array `(n, ...)` that they are written to.
        where: traced bool `(1,)`, the rows that are computed and written; None means all.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: Sequence[tuple[Any, Source]] = (),
        where: Traced | None = None,
    ):
        sources = [(each.source, each.by_slot) for each in inputs.all]
        stores: list[_Store] = []
        for index, each in enumerate(inputs.all):
            after, array = nodes_of(each.traced), _array_of(each.source)
            stores += [
                (index, _offset(array, place), node)
                for place, node in np.ndenumerate(after)
                if node is not each.before[place]
            ]
        for traced, source in outputs:
            array = _array_of(source)
            nodes = nodes_of(cast(traced, array.dtype)).reshape(1, *array.shape[1:])
            stores += [(len(sources), _offset(array, place), node) for place, node in np.ndenumerate(nodes)]
            sources.append((source, False))
        text, used = _text(stores, None if where is None else nodes_of(where)[0], [slots for _, slots in sources])
        self._arrays = [_array_of(sources[index][0]) for index in used]
        self._varying = [(k, get) for k, index in enumerate(used) if callable(get := sources[index][0])]
        self._table = np.zeros((2, len(used)), np.int64)  # addresses, bytes from row to row
        for k, array in enumerate(self._arrays):
            self._table[:, k] = _place(array)
        self._address = self._table.ctypes.data
        self._engine, self._function = _compiled(text)

    def of_rows(self, envs: NDArray[np.int64], slots: NDArray[np.int64]) -> Callable[[], None]:
        """Return a function that computes these envs `(m,)`, which are in these slots `(m,)` of their batch."""
        rows = np.array([envs, slots], np.int64)
        return functools.partial(self._compute, rows, rows[0].ctypes.data, rows[1].ctypes.data)

    def _compute(self, rows: NDArray[np.int64], envs: int, slots: int) -> None:
        arrays = self._arrays
        for column, get in self._varying:
            array = get()
            if array is not arrays[column]:
                self._replace(column, array)
        self._function(self._address, envs, slots, rows.shape[1])

    def _replace(self, column: int, array: NDArray[Any]) -> None:
        """Replace the array of an input or output."""
        old = self._arrays[column]
        if (array.dtype, array.shape[1:], array.strides[1:]) != (old.dtype, old.shape[1:], old.strides[1:]):
            raise ValueError(f'an array of another layout than before: {array.dtype}, {array.shape}')
        self._arrays[column] = array
        self._table[:, column] = _place(array)


def _array_of(source: Source) -> NDArray[Any]:
    """Return the current array of a source."""
    return source() if callable(source) else source


def _place(array: NDArray[Any]) -> tuple[int, int]:
    """Return the address of an array, and the bytes from row to row."""
    return array.__array_interface__['data'][0], array.strides[0]  # `ctypes.data` takes three times as long


def _offset(array: NDArray[Any], place: Sequence[int]) -> int:
    """Return the offset of an element within its row [bytes]."""
    return int(sum(step * stride for step, stride in zip(place[1:], array.strides[1:], strict=True)))


def _text(stores: Sequence[_Store], where: Node | None, by_slot: Sequence[bool]) -> tuple[str, list[int]]:
    """Return the function in LLVM's language, and the sources that it reads or writes, in the order of its table."""
    columns: dict[int, int] = {}

    def place(source: int, offset: int) -> str:
        return writer.line(f'getelementptr i8, ptr %row{columns.setdefault(source, len(columns))}, i64 {offset}')

    def load(node: Node) -> str:
        kind, memory = TYPES[node.dtype.name], _MEMORY.get(node.dtype.name, TYPES[node.dtype.name])
        value = writer.line(f'load {memory}, ptr {place(*node.args)}, align 1{_OWN_ROW}')
        return value if memory == kind else writer.line(f'icmp ne {memory} {value}, 0')

    writer = Writer(load)
    writer.lines.append(f'br i1 {"true" if where is None else writer.name(where)}, label %row, label %next')
    writer.lines.append('row:')
    values = [(source, offset, node, writer.name(node)) for source, offset, node in stores]
    for source, offset, node, name in values:
        kind = TYPES[node.dtype.name]
        if kind == 'i1':
            kind, name = 'i8', writer.line(f'zext i1 {name} to i8')
        writer.lines.append(f'store {kind} {name}, ptr {place(source, offset)}, align 1{_OWN_ROW}')
    entry, rows = list[str](), list[str]()
    for source, k in columns.items():
        entry += [
            f'%at{k} = getelementptr i64, ptr %table, i64 {k}',
            f'%base{k} = load ptr, ptr %at{k}',
            f'%far{k} = getelementptr i64, ptr %table, i64 {len(columns) + k}',
            f'%stride{k} = load i64, ptr %far{k}',
        ]
        rows += [
            f'%shift{k} = mul i64 %{"slot" if by_slot[source] else "env"}, %stride{k}',
            f'%row{k} = getelementptr i8, ptr %base{k}, i64 %shift{k}',
        ]
    lines = [
        *sorted(writer.declared),
        'define void @kernel(ptr %table, ptr %envs, ptr %slots, i64 %n) {',
        *entry,
        '%some = icmp sgt i64 %n, 0',
        'br i1 %some, label %body, label %end',
        'body:',
        '%i = phi i64 [0, %0], [%after, %next]',
        '%env.at = getelementptr i64, ptr %envs, i64 %i',
        f'%env = load i64, ptr %env.at{_OWN_ROW}',
        '%slot.at = getelementptr i64, ptr %slots, i64 %i',
        f'%slot = load i64, ptr %slot.at{_OWN_ROW}',
        *rows,
        *writer.lines,
        'br label %next',
        'next:',
        '%after = add i64 %i, 1',
        '%more = icmp slt i64 %after, %n',
        'br i1 %more, label %body, label %end, !llvm.loop !0',
        'end:',
        'ret void',
        '}',
        *(_ROWS_AT_ONCE if all('@llvm.' in line for line in writer.declared) else _ROW_BY_ROW),
        '',
    ]
    return '\n'.join(lines), list(columns)


def _machine() -> Any:
    """Return LLVM for the host's processor; an engine owns the target machine that it gets."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3
    )


@functools.lru_cache(64)  # envs of one kind have one text, as addresses are arguments
def _compiled(text: str) -> tuple[Any, Callable[..., None]]:
    """Return the engine that holds the code, and the function."""
    from llvmlite import binding

    machine = _machine()
    module = binding.parse_assembly(text)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = True  # several joints at once
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return engine, prototype(engine.get_function_address('kernel'))
