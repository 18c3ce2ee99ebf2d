"""Warp arrays: their copies on the host, kernels over the rows of envs, and messages of what can take long or fail."""

# pyright: reportIndexIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false
# (kernels are compiled by Warp, whose arrays have no types for what kernels do with them)

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from internutopia.util.progress import progress_bar

wp.set_module_options({'enable_backward': False})  # else compiling takes several times as long

# kinds of what `find_bad` finds: where in a state a number is bad
BAD_QUANTITIES = ('', 'control of actuator', 'position at dof', 'velocity at dof', 'acceleration at dof')


def shares_memory(device: wp.Device) -> bool:
    """Return whether host and device share their memory."""
    return device.is_cpu


class HostMirror:
    """An array and its copy on the host; only the outdated side is copied.

    On the CPU device both are the same memory. `invalidate` is to be called after the device wrote to it, `upload`
    before the device reads it. `tensor` is the array itself, for torch.

    Siblings are fetched together: what was read after one step is likely to be read after the next, and the host then
    waits once.
    """

    def __init__(self, array: Any, siblings: 'list[HostMirror] | None' = None):
        self.array = array
        self._siblings = [] if siblings is None else siblings
        self._siblings.append(self)
        self._was_read = False
        on_host = shares_memory(array.device)
        pinned = array.device.is_cuda
        self._host_copy = array if on_host else wp.empty(array.shape, array.dtype, device='cpu', pinned=pinned)
        self._host: NDArray[Any] = self._host_copy.numpy()
        self._on_host = self._fetched = on_host
        self._written = False
        self._tensor: Any = None

    def read(self) -> NDArray[Any]:
        """Return the values, not to be written to."""
        if not self._fetched:
            self._was_read = True
            behind = [mirror for mirror in self._siblings if mirror._was_read and not mirror._fetched]
            for mirror in behind:
                wp.copy(mirror._host_copy, mirror.array)
                mirror._fetched = True
            wp.synchronize_device(self.array.device)
        return self._host

    def write(self) -> NDArray[Any]:
        """Return the values, to be written to before the next `upload`."""
        host = self.read()
        self._written = not self._on_host
        return host

    def upload(self) -> None:
        """Bring what was written to the device."""
        if self._written:
            wp.copy(self.array, self._host_copy)
            self._written = False

    def invalidate(self) -> None:
        """Mark the host's copy as outdated, after the device wrote to the array."""
        self._fetched = self._on_host

    def tensor(self) -> Any:
        """Return the same memory as a torch tensor, to be read and written to before the next call of the engine."""
        self.upload()
        self.invalidate()
        if self._tensor is None:
            self._tensor = wp.to_torch(self.array, requires_grad=False)
        return self._tensor


@contextmanager
def memory_checked(what: str, cure: str) -> Iterator[None]:
    """Context that raises MemoryError if `what` is made in it and does not fit; the `cure` is what to use instead."""
    try:
        yield
    except RuntimeError as error:
        if 'allocate' not in str(error):
            raise
        raise MemoryError(f'{what} do not fit into the memory of the device: use {cure} ({error})') from error


@contextmanager
def compiling_shown(device: wp.Device) -> Iterator[None]:
    """Show how many modules of kernels have been compiled for a device in this context."""
    with (
        progress_bar(f'compiling kernels for {device.alias}', None) as advance,
        wp.ScopedLogger(_CompiledModules(wp.get_logger(), wp.config.log_level, advance)),
        wp.ScopedLogLevel(min(wp.config.log_level, wp.LOG_INFO)),
    ):
        yield


class _CompiledModules:
    """Logger of Warp that counts the modules which were compiled, and passes on what `level` lets through."""

    def __init__(self, logger: Any, level: int, advance: Callable[[], None]):
        self._logger, self._level, self._advance = logger, level, advance
        self.debug, self.error = logger.debug, logger.error

    def info(self, message: str) -> None:
        if message.endswith('(compiled)'):
            self._advance()
        if self._level <= wp.LOG_INFO:
            self._logger.info(message)

    def warning(self, message: str, category: Any = None, stacklevel: int = 1) -> None:
        if self._level <= wp.LOG_WARNING:
            self._logger.warning(message, category, stacklevel + 1)


def as_rows(array: Any) -> Any:
    """View an array `(n, ...)` of numbers, or of vectors or matrices of floats, as `(n, columns)`."""
    size = int(np.prod(array.shape[1:])) * wp.types.type_size(array.dtype)
    dtype = float if wp.types.type_is_composite(array.dtype) else array.dtype
    rows = wp.array(ptr=array.ptr, dtype=dtype, shape=(array.shape[0], size), device=array.device, copy=False)
    rows._owner = array  # the memory lives as long as this
    return rows


@wp.kernel
def copy_rows(selected: wp.array[bool], which: bool, source: wp.array2d[Any], target: wp.array2d[Any]):
    """Copy the rows where `selected` is `which`; a source of one row is copied to all of them."""
    row, column = wp.tid()
    if selected[row] == which:
        target[row, column] = source[row % source.shape[0], column]


@wp.kernel
def find_failed(selected: wp.array[bool], report: wp.array2d[int], failed: wp.array[bool]):
    """Flag the selected rows that are bad."""
    row = wp.tid()
    failed[row] = selected[row] and report[row, 0] > 0


@wp.kernel
def find_bad(values: wp.array2d[float], kind: int, limit: float, report: wp.array2d[int]):
    """Note for each row the kind of values and the column of the first that is NaN or beyond a limit, if none was yet.

    `report` is `(n, 3)`: kind, column, overflow.
    """
    row = wp.tid()
    if report[row, 0] == 0:
        for column in range(values.shape[1]):
            value = values[row, column]
            if not (wp.abs(value) <= limit) and report[row, 0] == 0:
                report[row, 0] = kind
                report[row, 1] = column


@wp.kernel
def find_overflow(
    overflow: wp.array[int],
    constraints: wp.array[int],
    contacts: wp.array[int],
    pairs: wp.array[int],
    constraint_limit: int,
    contact_limit: int,
    constraint_flag: int,
    contact_flag: int,
    report: wp.array2d[int],
    all_flags: wp.array[int],
):
    """Note for each row which buffers were too small: by the engine's flags, and by its counters.

    `all_flags` `(1,)` collects them.
    """
    row = wp.tid()
    flags = overflow[row]
    if constraints[row] > constraint_limit:
        flags = flags | constraint_flag
    if contacts[0] > contact_limit or pairs[0] > contact_limit:
        flags = flags | contact_flag
    report[row, 2] = flags
    if flags != 0:
        wp.atomic_or(all_flags, 0, flags)
