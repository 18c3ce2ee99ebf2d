"""Modules that every worker needs, imported once in the process that workers are forked from.

Nothing is started here: neither threads, nor OpenGL, nor an event loop would survive a fork.
"""

from __future__ import annotations

import os

# before numpy is imported: its linear algebra would start a thread per core, in each of many workers
for _name in ('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ.setdefault(_name, '1')
_opengl = os.environ.get('MUJOCO_GL')
os.environ['MUJOCO_GL'] = 'disable'  # importing mujoco would load it; a worker does so when it renders

import internutopia.engines.mujoco.world  # noqa: E402, F401 - imported when the first env is built, otherwise
import internutopia.remote.server.worker  # noqa: E402
import internutopia.rl.vector_env  # noqa: E402, F401
from internutopia.util.imports import load_extensions  # noqa: E402

load_extensions()

if _opengl is None:
    del os.environ['MUJOCO_GL']
else:
    os.environ['MUJOCO_GL'] = _opengl
