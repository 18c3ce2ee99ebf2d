"""Two processes of Ray with an env each."""

from pathlib import Path

from .base import base

distribution = {
    'type': 'ray',
    'proc_num': 2,
    'gpu_num_per_proc': 0.5,
    'head_address': None,
    'working_dir': str(Path(__file__).parents[2]),  # where workers find this package
}
settings = base | {
    'env_settings': base['env_settings'] | {'distribution_config': distribution},
    'task_settings': base['task_settings'] | {'use_distributed': True, 'proc_num': 2},
}
