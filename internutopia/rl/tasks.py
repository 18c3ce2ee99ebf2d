"""Former path of `internutopia_extension.learning_tasks`, for scripts that import from here."""

import importlib
import pkgutil
import sys

_TASKS = importlib.import_module('internutopia_extension.learning_tasks')
for _module in pkgutil.iter_modules(_TASKS.__path__):
    sys.modules[f'{__name__}.{_module.name}'] = importlib.import_module(f'{_TASKS.__name__}.{_module.name}')
sys.modules[__name__] = _TASKS
