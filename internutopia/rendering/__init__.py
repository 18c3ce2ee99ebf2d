"""Rendering: camera images of an env, by MuJoCo's OpenGL renderer off screen.

`camera.py` has poses and projections of cameras, `gl.py` opens OpenGL, `canvas.py` renders one env, `renderer.py` many
on its own threads; `video.py` writes images to a file. Nothing of them is started, and OpenGL is not touched,
before the first image is requested.
"""
