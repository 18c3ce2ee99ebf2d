"""Program that reads files, one path a line, within limits on each, and says what came of it: a line for each.

`ok`, `refused` (a ValueError, or an OSError: there is nothing), or the name of another exception and its traceback.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import traceback
from pathlib import Path

from internutopia.model.importers.load import content_key, load_spec
from internutopia.rl.policy import load_policy

SECONDS = 10
"""Processor time that a file may take."""
MEMORY = 2**30
"""Bytes that a file may take."""


def _read(path: Path) -> None:
    if path.suffix in ('.onnx', '.pt'):
        load_policy(path)
    else:
        content_key(path)
        load_spec(path).compile()


def _outcome(path: Path) -> str:
    try:
        _read(path)
    except (ValueError, OSError):
        return 'refused'
    except BaseException:  # whatever else it is, is a fault
        return traceback.format_exc()
    return 'ok'


def _limit() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def _main(warm_up: str) -> None:
    logging.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _outcome(Path(warm_up))  # loads libraries, which count for nothing
    status = Path('/proc/self/status').read_text()
    used = next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith('VmData:'))
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, resource.RLIM_INFINITY))
    for line in sys.stdin:
        _limit()
        print(json.dumps(_outcome(Path(line.rstrip('\n')))), flush=True)


if __name__ == '__main__':
    _main(sys.argv[1])
