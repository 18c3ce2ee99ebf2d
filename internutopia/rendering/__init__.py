"""Rendering: camera pictures of an env, by MuJoCo's OpenGL renderer off screen.

`camera.py` has poses and projections of cameras, `gl.py` opens OpenGL, `canvas.py` renders one env, `renderer.py` many
on threads of its own; `video.py` writes pictures to a file. Nothing of them is started, and OpenGL is not touched,
before the first picture is requested.
"""
