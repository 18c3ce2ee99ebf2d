"""OpenGL contexts without a window.

`MUJOCO_GL` (`egl` or `osmesa`) decides what is used; without it EGL is tried first, then OSMesa. Windows of GLFW can
only be used from the main thread: on Linux they are never used.

Mesa's software renderer is for one thread at a time, that which has the `SOFTWARE_TURN`, however many contexts there
are: drawing in one searches the unfinished images of all contexts of the process for uses of a buffer,
without a lock in Mesa 22.3, and so crashed once in ten thousand images while other threads rendered.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from ctypes import c_char_p, cast
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
_SOFTWARE = ('llvmpipe', 'softpipe', 'software')  # in names of renderers
SOFTWARE_TURN = threading.RLock()
if hasattr(os, 'register_at_fork'):  # a child begins with no image half done, and with a turn that can be had
    os.register_at_fork(
        before=SOFTWARE_TURN.acquire, after_in_parent=SOFTWARE_TURN.release, after_in_child=SOFTWARE_TURN.release
    )


class NoOpenGLError(RuntimeError):
    """Nothing can be rendered here."""


def open_context() -> Any:
    """Open an OpenGL context, current in the calling thread; `free()` it there. NoOpenGLError with what to install."""
    failures: list[str] = []
    os.environ.setdefault(*_SOFTWARE_THREADS)
    with SOFTWARE_TURN:  # what it will be is not known before
        for name in _candidates():
            try:
                context = importlib.import_module(f'mujoco.{name}').GLContext(1, 1)  # images are rendered off screen
                context.make_current()
                return context
            except Exception as error:  # the error for what is missing can be of any type
                failures.append(f'{name}: {type(error).__name__}: {error}')
    raise NoOpenGLError(f'rendering is not possible ({"; ".join(failures)}). {_HELP}')


def renders_in_software() -> bool:
    """Return True if the current context renders on the CPU."""
    from OpenGL.raw.GL.VERSION.GL_1_0 import GL_RENDERER, glGetString

    name: Any = glGetString(GL_RENDERER)  # a pointer
    renderer = (cast(name, c_char_p).value or b'').decode(errors='replace').lower()
    return any(each in renderer for each in _SOFTWARE)


def check_choice() -> None:
    """Raise ValueError if `MUJOCO_GL` is a value with which MuJoCo cannot be imported; call it before that is."""
    names = _OF_SYSTEM.get(sys.platform, ())
    if _choice() not in (*names, *_SWITCHED_ON, *_SWITCHED_OFF):
        raise ValueError(
            f'the environment variable MUJOCO_GL is {os.environ["MUJOCO_GL"]!r}: expected '
            f"{', '.join(map(repr, names))}, 'disable' (no rendering), or unset"
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
        raise NoOpenGLError(f'rendering is disabled by MUJOCO_GL={wanted}. {_HELP}')
    return (wanted,) if wanted in _LINUX else _LINUX
