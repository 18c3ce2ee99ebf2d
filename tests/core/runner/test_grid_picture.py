"""Grid picture, `env.render()`: all envs, each in its place."""

from __future__ import annotations

import numpy as np
import pytest

from internutopia.core import gym_env
from internutopia.rendering.camera import CameraPose, Intrinsics, half_angle
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg

SIZE = 96, 72
COLOURS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0))


@pytest.fixture
def grid(make_env, make_task, write_model, opengl):
    """Four envs in four scenes: a block of another colour each, in the middle of the cell."""
    scenes = [
        write_model(
            f'block_{i}',
            f"""<worldbody><geom type="plane" size="9 9 1" rgba="0.5 0.5 0.5 1"/>
            <geom type="box" size="0.5 0.5 0.5" pos="0 0 0.5" rgba="{r} {g} {b} 1"/>{'<site/>' * i}
            <body name="mast"><camera name="top" pos="0 0 {4 + i}" fovy="30"/></body></worldbody>""",
        )
        for i, (r, g, b) in enumerate(COLOURS)
    ]
    env = make_env(tasks=[make_task(scene, robots=[]) for scene in scenes], env_num=4, env_offset_size=3.0)
    env.reset()
    return env


def seen_colour(picture: np.ndarray, camera_pose: CameraPose, point: np.ndarray) -> tuple[int, ...]:
    """Which of the three colours is strong where a point of the world frame is in the picture."""
    (x, y), ahead = camera_pose.project(point)
    assert ahead > 0 and abs(x) < 1 and abs(y) < 1
    pixel = picture[int(0.5 * (1 - y) * SIZE[1]), int(0.5 * (x + 1) * SIZE[0])].astype(int)
    return tuple(int(value > 0.6 * pixel.max()) for value in pixel)


@pytest.mark.parametrize('view', [((-4.0, -5.0, 6.0), (1.5, 1.5, 0.0)), ((1.5, 1.4, 12.0), (1.5, 1.5, 0.0))])
def test_every_env_is_in_its_place(grid, view):
    picture = grid.render(view, SIZE)
    assert picture.shape == (SIZE[1], SIZE[0], 3) and picture.dtype == np.uint8
    camera_pose = CameraPose.looking_at(view[1], view[0], Intrinsics.of_height(half_angle(45.0), SIZE))
    for offset, colour in zip(grid.runner.world.env_origins, COLOURS, strict=True):
        assert seen_colour(picture, camera_pose, offset + [0.0, 0.0, 1.0]) == colour


def test_the_default_camera_sees_all_of_them(grid):
    picture = grid.render(resolution=SIZE).astype(int)
    for colour in COLOURS:
        strong = np.array([value == 1 for value in colour])
        match = (picture[..., strong].min(axis=-1) > 2 * picture[..., ~strong].max(axis=-1)).sum()
        assert match > 20, f'the block of colour {colour} is in {match} pixels'


@pytest.mark.parametrize('camera', [None, 'top'])
def test_the_default_camera_is_as_near_as_it_can_be(grid, camera):
    low, high = np.array([-0.5, -0.5, 0.0]), np.array([3.5, 3.5, 1.0])  # from the first block to the last
    pose = grid.runner.camera_pose(camera, SIZE)
    corners = np.array(np.meshgrid(*np.stack([low, high], axis=1))).reshape(3, -1).T
    places = pose.project(corners)[0]
    assert 0.85 < np.abs(places).max() < 0.95  # with a margin, and whichever side is the first to touch the border
    np.testing.assert_allclose(places.max(axis=0), -places.min(axis=0), atol=1e-3)  # in the middle


def test_a_fixed_arm_fills_the_picture(make_env, make_task):
    import_extensions()
    env = make_env(tasks=[make_task('scenes/empty.xml', robots=[FrankaRobotCfg()])] * 4, env_num=4)
    env.reset()
    pose = env.runner.camera_pose(None, SIZE)
    assert 4.0 < np.linalg.norm(pose.position - env.runner.world.env_origins.mean(axis=0)) < 14.0
    alone = make_env(tasks=[make_task('scenes/empty.xml', robots=[FrankaRobotCfg()])], env_num=1)
    alone.reset()
    low, high = alone.runner.world.articulation('franka', 0).box(0)
    places, _ = alone.runner.camera_pose(None, SIZE).project(np.array([low, high]))
    assert (np.abs(places) < 1.0).all() and np.ptp(places, axis=0).max() > 0.7


def test_a_backdrop_does_not_count(make_env, make_task, write_model):
    block = '<geom type="box" size="0.5 0.5 0.5"/>'
    bodies = {'bare': block, 'painted': f'{block}<geom type="sphere" size="150" contype="0" conaffinity="0"/>'}
    poses = []
    for name, geoms in bodies.items():
        env = make_env(tasks=[make_task(write_model(name, f'<worldbody>{geoms}</worldbody>'), robots=[])], env_num=1)
        env.reset()
        poses.append(env.runner.camera_pose(None, SIZE).position)
    np.testing.assert_array_equal(*poses)


def test_through_the_camera_of_an_env(grid):
    for env_id in (1, 2):
        picture = grid.render(f'/World/env_{env_id}/scene/mast/top', SIZE)
        middle = picture[SIZE[1] // 2, SIZE[0] // 2]
        assert tuple((middle > 0.6 * middle.max()).astype(int)) == COLOURS[env_id]


def test_a_large_grid_shows_the_cells(make_env, make_task, write_model, opengl):
    scene = write_model(
        'post', '<worldbody><geom type="box" size="0.3 0.3 0.5" pos="0 0 0.5" rgba="1 0 0 1"/></worldbody>'
    )
    env = make_env(tasks=[make_task(scene, robots=[])] * 25, env_num=25, env_offset_size=2.0)
    env.reset()
    middle = env.runner.world.env_origins.mean(axis=0)
    view = (middle + [-9.0, -11.0, 9.0], middle)
    picture = env.render(view, SIZE)
    camera_pose = CameraPose.looking_at(view[1], view[0], Intrinsics.of_height(half_angle(45.0), SIZE))
    assert all(
        seen_colour(picture, camera_pose, offset + [0, 0, 1.0]) == (1, 0, 0) for offset in env.runner.world.env_origins
    )


def test_an_infinite_floor_reaches_far_however_small_what_stands_on_it(make_env, make_task, write_model, opengl):
    scene = write_model(
        'small',
        """<worldbody><geom type="plane" size="0 0 1" rgba="1 0 0 1"/>
        <geom type="box" size="0.01 0.01 0.01" pos="0 0 0.01"/></worldbody>""",
    )
    env = make_env(tasks=[make_task(scene, robots=[])], env_num=1)
    env.reset()
    picture = env.render(((0.0, -40.0, 30.0), (0.0, 0.0, 0.0)), SIZE).astype(int)
    assert (picture[..., 0] > 2 * picture[..., 1]).all()  # nothing of the sky above it


def test_rendering_changes_nothing(make_env, make_task, make_robot, opengl):
    def run(render: bool) -> list[np.ndarray]:
        task = make_task('floor', robots=[make_robot('hopper', position=(0, 0, 0.5))], max_steps=50)
        env = make_env(tasks=[task], env_num=1)
        env.reset()
        states = []
        for _ in range(4):
            states.append(env.step([None])[0][0]['hopper']['joint_positions'])
            if render:
                env.render(resolution=(8, 6))
        return states

    assert (np.array(run(True)) == run(False)).all()


def test_wrong_arguments(grid):
    with pytest.raises(ValueError, match="no camera at 'top_of_it' in the scene; .*'mast/top'"):
        grid.render('/World/env_0/scene/top_of_it')
    with pytest.raises(ValueError, match="'/World/env_0/robots/me/eye': cameras are below /World/env_0/scene/"):
        grid.render('/World/env_0/robots/me/eye')
    with pytest.raises(KeyError, match='env_7'):
        grid.render('/World/env_7/scene/mast/top')
    with pytest.raises(ValueError, match=r"camera \(320, 240\): expected None, 'top', a prim path or two points"):
        grid.render((320, 240))
    with pytest.raises(ValueError, match='position and target are the same point'):
        grid.render(((0, 0, 1), (0, 0, 1)))
    with pytest.raises(ValueError, match='width and height must be positive'):
        grid.render(resolution=(0, 10))
    with pytest.raises(ValueError, match=r'resolution 320: expected \(width, height\)'):
        grid.render(resolution=320)
    grid.close()
    with pytest.raises(RuntimeError, match='render: this Env is closed'):
        grid.render()


def test_envs_without_an_episode_are_not_there(make_env, make_task):
    env = make_env(tasks=[make_task('floor')], env_num=1)
    assert not env.render(resolution=SIZE).any()


def test_gym_env_renders_if_told_so(make_config, make_task, opengl):
    config = make_config([make_task('floor', robots=[])], 1)
    env = gym_env.Env(config, render_mode='rgb_array')
    env.reset()
    assert env.render().shape == (480, 640, 3)
    env.close()
    silent = gym_env.Env(config)
    assert silent.render() is None
    silent.close()
    with pytest.raises(ValueError, match="'ansi': expected None or 'human'"):
        gym_env.Env(config, render_mode='ansi')
