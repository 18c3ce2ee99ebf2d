# MuJoCo's bindings carry no types; to the type checker everything in them is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
