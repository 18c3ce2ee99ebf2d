# Names of an optional package, so that pyright says the same with and without it
from typing import Any

def __getattr__(name: str) -> Any: ...
