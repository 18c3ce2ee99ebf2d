"""OpenGL contexts without a window.

`MUJOCO_GL` (`egl` or `osmesa`) decides what is used; without it EGL is tried first, then OSMesa. Windows of GLFW can
only be used from the main thread: on Linux they are never used.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

_LINUX = ('egl', 'osmesa')
# Mesa's software renderer then works in the calling thread: envs are rendered in parallel as it is, and threads of its
# own would not survive a fork, after which a child that renders would wait for them forever
_SOFTWARE_THREADS = ('LP_NUM_THREADS', '0')
_HELP = (
    'Pictures need OpenGL without a display: `apt install libegl1` (a GPU with its driver, or Mesa) and '
    'MUJOCO_GL=egl, or `apt install libosmesa6` and MUJOCO_GL=osmesa. Whatever needs no pictures runs without it.'
)
_SWITCHED_OFF = ('disable', 'disabled', 'off', 'false', '0')
_SWITCHED_ON = ('', 'enable', 'enabled', 'on', 'true', '1')
_OF_SYSTEM = {'linux': ('egl', 'osmesa', 'glfw', 'glx'), 'darwin': ('cgl', 'glfw'), 'win32': ('wgl', 'glfw')}
_lock = threading.Lock()


class NoOpenGLError(RuntimeError):
    """Nothing can be rendered here."""


def open_context() -> Any:
    """A new OpenGL context, current in the calling thread; `free()` it there. NoOpenGLError with what to install."""
    failures: list[str] = []
    os.environ.setdefault(*_SOFTWARE_THREADS)
    with _lock:
        for name in _candidates():
            try:
                context = importlib.import_module(f'mujoco.{name}').GLContext(1, 1)  # pictures are rendered off screen
                context.make_current()
                return context
            except Exception as error:  # what is missing is said in many ways
                failures.append(f'{name}: {type(error).__name__}: {error}')
    raise NoOpenGLError(f'nothing can be rendered here ({"; ".join(failures)}). {_HELP}')


def check_choice() -> None:
    """ValueError if `MUJOCO_GL` is a value with which MuJoCo cannot be imported; call it before that is."""
    names = _OF_SYSTEM.get(sys.platform, ())
    if _choice() not in (*names, *_SWITCHED_ON, *_SWITCHED_OFF):
        raise ValueError(
            f'the environment variable MUJOCO_GL is {os.environ["MUJOCO_GL"]!r}: expected '
            f"{', '.join(map(repr, names))}, 'disable' (no pictures), or that it is not set"
        )


def _choice() -> str:
    return os.environ.get('MUJOCO_GL', '').lower().strip()


def _candidates() -> tuple[str, ...]:
    if sys.platform == 'darwin':
        return ('cgl',)
    if sys.platform == 'win32':
        return ('glfw',)
    wanted = _choice()
    if wanted in _SWITCHED_OFF:
        raise NoOpenGLError(f'rendering is switched off by MUJOCO_GL={wanted}. {_HELP}')
    return (wanted,) if wanted in _LINUX else _LINUX
