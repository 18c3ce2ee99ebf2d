"""Recurrent networks with their state outside, a row per env: TorchScript with buffers, ONNX with inputs and outputs.

A state is a tuple of arrays, `(n, ...)` for n envs. Each env's actions and state depend on its own rows alone, as those
of other networks do: rows are computed in blocks of one size, or one by one where a file takes one only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float32]
State = tuple[Array, ...]
BLOCK = 16  # rows that a network is given at once
_ALIKE = 1e-3  # of rows that are computed alone and together, by rounding
_ROUNDING = 1e-5  # of what is computed twice


def in_blocks(
    run: Callable[[Array, State], tuple[Array, State]], observations: Array, state: State, size: int
) -> tuple[Array, State]:
    """Return actions and states of a network that is given so many rows at a time; missing ones are zero."""
    n = len(observations)
    padded = [np.pad(rows, ((0, -n % size), *[(0, 0)] * (rows.ndim - 1))) for rows in (observations, *state)]
    blocks = [run(first[i : i + size], tuple(rows[i : i + size] for rows in rest))
              for first, *rest in [padded] for i in range(0, len(first), size)]  # fmt: skip
    actions, states = zip(*blocks, strict=True)
    return np.concatenate(actions)[:n], tuple(np.concatenate(rows)[:n] for rows in zip(*states, strict=True))


def env_axis(file: Path, name: str, shape: Sequence[Any]) -> int:
    """Return the axis of envs in a state: of size 1 or not fixed; of layers first, the second. ValueError for none."""
    free = [axis for axis, size in enumerate(shape) if size == 1 or not isinstance(size, int)]
    preferred = 1 if len(shape) == 3 else 0
    if not free:
        raise ValueError(f'policy {file}: its state {name!r} has shape {tuple(shape)}, none of its axes is one of envs')
    return preferred if preferred in free else free[0]


class ScriptNetwork:
    """A TorchScript network; buffers that a call changes are its state.

    A method `reset_memory` is called once to learn how the state begins; else it begins as it is in the file.
    """

    def __init__(self, file: Path, module: torch.jit.ScriptModule):
        if hasattr(module, 'reset_memory'):
            module.reset_memory()
        self._file, self._module = file, module
        self._initial: State | None = None
        self._axes: dict[str, int] = {}
        self._block = BLOCK

    def initial(self, observations: Array) -> State:
        """Return the state of one env at the start of an episode, given its observation `(1, dim)`; empty for none.

        ValueError if a state has no axis of envs, or is not in buffers.
        """
        import torch

        if self._initial is not None:
            return self._initial
        before = {name: buffer.clone() for name, buffer in self._module.named_buffers()}
        seen, other = torch.from_numpy(observations), torch.from_numpy(observations + 1.0)
        with torch.inference_mode():
            actions = self._module(seen).clone()
            self._module(other)  # zeros may leave a state as it is
            after = dict(self._module.named_buffers())
            changed = [name for name in before if not torch.equal(after[name], before[name])]
            for name in changed:
                self._set(name, before[name].clone())
            again = self._module(seen)
        for name in changed:
            if after[name].shape != before[name].shape:
                raise ValueError(
                    f'policy {self._file}: its state {name!r} has shape {tuple(before[name].shape)} before an action '
                    f'and {tuple(after[name].shape)} after it'
                )
        if not torch.allclose(actions, again, _ROUNDING, _ROUNDING, equal_nan=True):
            raise ValueError(
                f'policy {self._file} gives different actions for one observation: it is random, or has a hidden state '
                'outside of its buffers (`register_buffer`), which envs would share'
            )
        self._axes = {name: env_axis(self._file, name, before[name].shape) for name in changed}
        self._initial = tuple(before[name].numpy().take(0, axis) for name, axis in self._axes.items())
        if changed and not self._takes_rows(observations):
            self._block = 1
        return self._initial

    def __call__(self, observations: Array) -> Array:
        """Compute actions `(n, k)`. ValueError if the network has a state."""
        if self.initial(observations[:1]):
            raise ValueError(
                f'policy {self._file} has a hidden state ({", ".join(self._axes)}): run it '
                'with a MoveBySpeedController, which keeps that of each env'
            )
        return self.step(observations, ())[0]

    def step(self, observations: Array, state: State) -> tuple[Array, State]:
        """Compute actions `(n, k)` and the next states for observations `(n, dim)` and states `(n, ...)`."""
        return in_blocks(self._run, observations, state, self._block)

    def _run(self, observations: Array, state: State) -> tuple[Array, State]:
        import torch

        with torch.inference_mode():
            for (name, axis), rows in zip(self._axes.items(), state, strict=True):
                self._set(name, torch.from_numpy(np.moveaxis(rows, 0, axis).copy()))
            actions = self._module(torch.from_numpy(observations)).numpy()
            buffers = dict(self._module.named_buffers())
            after = [np.moveaxis(buffers[name].numpy(), axis, 0).copy() for name, axis in self._axes.items()]
        return actions, tuple(after)

    def _set(self, name: str, values: torch.Tensor) -> None:
        """Replace a buffer of the network."""
        *path, buffer = name.split('.')
        setattr(functools.reduce(getattr, path, self._module), buffer, values)

    def _takes_rows(self, observations: Array) -> bool:
        """Return True if several rows at once give what each gives alone."""
        assert self._initial is not None
        rows = np.concatenate([observations, np.zeros_like(observations), observations + 1.0]).astype(np.float32)
        state = tuple(np.stack([each, each + 0.5, each - 0.5]) for each in self._initial)
        alone = in_blocks(self._run, rows, state, 1)
        try:
            together = self._run(rows, state)
        except Exception:  # of libraries, without a common base
            return False
        pairs = zip((alone[0], *alone[1]), (together[0], *together[1]), strict=True)
        return all(a.shape == b.shape and np.allclose(a, b, _ALIKE, _ALIKE) for a, b in pairs)


class OnnxRecurrent:
    """A network of an ONNX session whose inputs after the first are its state, and so its outputs, in that order.

    The state begins at zero. ValueError if there are other numbers of inputs and outputs.
    """

    def __init__(self, file: Path, session: Any):
        inputs, outputs = session.get_inputs(), session.get_outputs()
        if len(inputs) != len(outputs):
            raise ValueError(
                f'policy {file} must have one input, the observations, or further ones and as many further outputs, '
                f'its state; it has {len(inputs)} inputs and {len(outputs)} outputs'
            )
        self._file, self._session = file, session
        self._names = [each.name for each in inputs]
        self._axes = [env_axis(file, each.name, each.shape) for each in inputs[1:]]
        shapes = [
            np.delete(np.array(each.shape, object), axis) for each, axis in zip(inputs[1:], self._axes, strict=True)
        ]
        self._initial = tuple(np.zeros(tuple(map(int, shape)), np.float32) for shape in shapes)
        fixed = [each.shape[axis] for each, axis in zip(inputs, (0, *self._axes), strict=True)]
        self._block = next((size for size in fixed if isinstance(size, int)), BLOCK)

    def initial(self, observations: Array) -> State:
        """Return the state of one env at the start of an episode."""
        return self._initial

    def __call__(self, observations: Array) -> Array:
        """Raise ValueError: the network has a state."""
        raise ValueError(
            f'policy {self._file} has a hidden state ({", ".join(self._names[1:])}): run it '
            'with a MoveBySpeedController, which keeps that of each env'
        )

    def step(self, observations: Array, state: State) -> tuple[Array, State]:
        """Compute actions `(n, k)` and the next states for observations `(n, dim)` and states `(n, ...)`."""
        return in_blocks(self._run, observations, state, self._block)

    def _run(self, observations: Array, state: State) -> tuple[Array, State]:
        arrays = [
            np.ascontiguousarray(np.moveaxis(rows, 0, axis)) for rows, axis in zip(state, self._axes, strict=True)
        ]
        actions, *after = self._session.run(None, dict(zip(self._names, (observations, *arrays), strict=True)))
        return actions, tuple(np.moveaxis(rows, axis, 0) for rows, axis in zip(after, self._axes, strict=True))
