"""Two envs, whose robots walk."""

from .base import base, walking

settings = base | {'env_num': 2, 'controller': 'discrete', 'task_settings': walking | {'env_num': 2}}
