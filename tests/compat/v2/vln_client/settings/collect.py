"""Collects data in two envs, whose robots stay where something is in the way."""

from .base import base

settings = base | {
    'env_num': 2,
    'controller': 'flash_collision',
    'cameras': base['cameras'] | {'topdown': 200},
    'collect': True,
}
