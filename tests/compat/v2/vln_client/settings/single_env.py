"""One env, whose robot walks with the policy."""

from .base import base, walking

settings = base | {'controller': 'discrete', 'task_settings': walking}
