"""Rendering: what a camera sees of an env, drawn by MuJoCo's OpenGL renderer off screen.

`lens.py` says where a camera is and how it projects, `gl.py` opens OpenGL, `canvas.py` draws one env, `renderer.py`
draws many on threads of its own, `grid.py` makes one picture of all envs in their places. Nothing here is imported, and
OpenGL is not touched, before the first picture is asked for.
"""
