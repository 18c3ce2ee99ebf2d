"""Built-in terms by kind, for tests that each of them is tested."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from internutopia.rl.terms import (
    commands,
    observations,
    randomizations,
    registered_terms,
    rewards,
    terminations,
)

MODULES: dict[Any, ModuleType] = {  # metrics are those of the extension package
    'observation': observations,
    'reward': rewards,
    'termination': terminations,
    'command': commands,
    'randomization': randomizations,
    'curriculum': randomizations,
}
# tested in test_gait_terms.py and test_object_terms.py
ELSEWHERE = {
    *('feet_contacts', 'nearest_objects', 'near_objects_cost', 'near_object', 'joint_pose', 'scatter'),
    *('height_scan', 'terrain_pose'),
}


def built_in(kind: Any) -> dict[str, Callable[..., Any]]:
    return {name: f for name, f in registered_terms(kind).items() if f.__module__ == MODULES[kind].__name__}
