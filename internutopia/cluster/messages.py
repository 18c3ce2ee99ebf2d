"""Messages of values: pickled, with arrays as they lie in memory, so that nothing is copied but the message itself."""

from __future__ import annotations

import pickle
import struct
from contextlib import suppress
from typing import Any

from internutopia.cluster.message_pipe import Part

_ALIGNMENT = 16  # bytes, of arrays in a message


def to_message(value: Any) -> list[Part]:
    """Convert a value to parts of a message, in which classes of the main script may be.

    These are the number of further parts and their sizes (int64); what was pickled; each array.
    """
    rest, arrays = _pickled(value)
    contents: list[Part] = [rest, *(array.raw() for array in arrays)]
    parts: list[Part] = [struct.pack(f'<{1 + len(contents)}q', len(contents), *map(len, contents))]
    end = len(parts[0])
    for content in contents:
        gap = -end % _ALIGNMENT
        parts += [bytes(gap), content]
        end += gap + len(content)
    return parts


def from_message(message: bytearray) -> Any:
    """Restore the value; its arrays lie in the message."""
    memory = memoryview(message)
    (count,) = struct.unpack_from('<q', memory)
    contents: list[memoryview] = []
    end = 8 * (1 + count)
    for size in struct.unpack_from(f'<{count}q', memory, 8):
        start = end + -end % _ALIGNMENT
        end = start + size
        contents.append(memory[start:end])
    return pickle.loads(contents[0], buffers=contents[1:])


def _pickled(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Return a value without its arrays, and these.

    What pickles classes by value is written in Python, and takes twice as long: it has its turn only where there are
    such classes.
    """
    from ray import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    by_value = ('__main__', *cloudpickle.list_registry_pickle_by_value())  # pyright: ignore[reportPrivateImportUsage]
    with suppress(Exception):  # a function without a name, say
        rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        if not any(module.encode() in rest for module in by_value):
            return rest, arrays
    arrays.clear()
    return cloudpickle.dumps(value, protocol=5, buffer_callback=arrays.append), arrays  # pyright: ignore[reportPrivateImportUsage]
