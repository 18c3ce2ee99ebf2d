"""Two envs, whose robots are there at once, whatever is in the way."""

from .base import base

settings = base | {'env_num': 2}
