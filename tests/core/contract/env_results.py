"""Results of `reset` and `step`, as the tests of the contract read them."""

from typing import Any

NONE_ROW = (None, None, None, None, None)


def row(result: tuple[list, ...], env_id: int) -> tuple[Any, ...]:
    """One env's part of what `step` returned."""
    return tuple(column[env_id] for column in result)


def run_to_end(env, steps: int = 5) -> tuple[list, ...]:
    """Step without commands; the result of the last step."""
    result: Any = None
    for _ in range(steps):
        result = env.step([None] * env.env_num)
    return result


def indices(infos: list) -> list[int | None]:
    """Which task configs `reset` gave, by the number that `make_config` wrote into them."""
    return [None if info is None else info.index for info in infos]
