"""Films of the grid: the same pictures as `env.render`, with what stands still rendered once."""

from typing import Any

import numpy as np
import pytest

SIZE = 96, 72
SCENE = """<worldbody>
  <light pos="0 0 3"/>
  <geom type="plane" size="0 0 1" rgba="0.5 0.6 0.5 1"/>
  <geom type="box" size="0.3 0.3 0.5" pos="1 0 0.5" rgba="0.8 0.3 0.2 1"/>
  <body name="cube" pos="0 0 0.6"><freejoint/><geom type="box" size="0.3 0.3 0.3" rgba="0.2 0.3 0.9 1"/></body>
</worldbody>"""


@pytest.mark.slow
@pytest.mark.parametrize('env_num', [3, 20])
def test_a_film_shows_what_render_does(
    make_env: Any, make_task: Any, write_model: Any, opengl: None, env_num: int
) -> None:
    from internutopia.cli.film import GridFilm

    tasks = [make_task(write_model('cube', SCENE), robots=[], max_steps=8 + i % 3) for i in range(3 * env_num)]
    env = make_env(tasks=tasks, env_num=env_num)
    env.reset()
    film = GridFilm(env.runner, env.runner.camera_pose(None, SIZE), SIZE)
    seen = []
    for _ in range(12):
        _, _, terminated, truncated, _ = env.step([None] * env_num)
        seen.append(film.picture())
        assert np.abs(seen[-1].astype(int) - env.render(resolution=SIZE)).max() <= 1
        ended = [i for i in range(env_num) if terminated[i] or truncated[i]]
        if ended:
            env.reset(ended)
    assert not np.array_equal(seen[0], seen[5])


def test_what_stands_still_is_rendered_once(
    make_env: Any, make_task: Any, write_model: Any, opengl: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from internutopia.cli.film import GridFilm

    tasks = [make_task(write_model('cube', SCENE), robots=[], max_steps=3) for _ in range(4)]
    env = make_env(tasks=tasks, env_num=2)
    env.reset()
    asked: list[tuple[str, int]] = []
    world, render = env.runner.world, env.runner.world.render

    def spy(requests: Any, quality: Any = None) -> None:
        asked.extend((request.layer, request.env_id) for request in requests)
        render(requests, quality)

    monkeypatch.setattr(world, 'render', spy)
    film = GridFilm(env.runner, env.runner.camera_pose(None, SIZE), SIZE)
    film.picture()
    assert asked == [('still', 0), ('still', 1), ('moving', 0), ('moving', 1)]
    film.picture()
    assert len(asked) == 4  # nobody made a step
    env.step([None, None])
    film.picture()
    assert asked[4:] == [('moving', 0), ('moving', 1)]
    env.reset([1])
    film.picture()
    assert asked[6:] == [('still', 1), ('moving', 1)]
