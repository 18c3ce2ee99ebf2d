"""Render modes of learners' envs: pictures, their camera and markers, and Gymnasium's wrappers around them."""

import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from internutopia.config.learning import CommandTermCfg, LearningCfg
from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.rendering.camera import CameraPose, Frame, RenderRequest
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole, jetbot_goal, reach, velocity

pytestmark = pytest.mark.usefixtures('opengl')

SIZE = 320, 240
MODES = ['human', 'rgb_array', 'rgb_array_list', 'depth_array']


@pytest.fixture
def jetbots() -> Any:
    """Makes one Jetbot with a goal ahead and to the left; closed after the test."""
    made: list[VectorEnv] = []

    def make(commands: dict[str, Any] | None = None, **options: Any) -> VectorEnv:
        config = jetbot_goal.config(1, 0, distance=(0.5, 0.5))
        learning = config.task_configs[0].learning
        assert learning is not None
        fields = {'randomizations': [], **({'commands': learning.commands | commands} if commands else {})}
        made.append(VectorEnv(config, learning.update(**fields), width=SIZE[0], height=SIZE[1], **options))
        made[-1].reset(seed=0)
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def camera_of(envs: VectorEnv) -> CameraPose:
    """Where the default camera of env 0 is without goals."""
    return EnvCameras(envs.core.runner, None, SIZE).pose(0)


@pytest.mark.parametrize('task', [jetbot_goal, reach, velocity], ids=['jetbot', 'franka', 'h1'])
def test_the_robot_fills_a_good_part_of_the_picture(task: Any) -> None:
    envs = VectorEnv(task.config(1, 0), render_mode='rgb_array')
    envs.reset()
    frame = Frame.blank(SIZE, ('rgba', 'depth'))
    envs.core.runner.world.render([RenderRequest(0, camera_of(envs), frame, layer='moving')])
    envs.close()
    assert frame.rgba is not None
    rows, columns = np.nonzero(frame.rgba[..., 3])
    assert 0.3 < max(np.ptp(rows) / SIZE[1], np.ptp(columns) / SIZE[0]) < 0.95
    middle = np.array([columns.mean() / SIZE[0], rows.mean() / SIZE[1]])
    assert (np.abs(middle - 0.5) < 0.2).all()


def green(picture: np.ndarray) -> np.ndarray:
    """Mean pixel (column, row) of what is as green as a marker."""
    values = picture.astype(int)
    rows, columns = np.nonzero((values[..., 1] > 100) & (values[..., 1] > 2.0 * values[..., [0, 2]].max(axis=-1)))
    assert len(rows) > 5
    return np.array([columns.mean(), rows.mean()])


def pixel(pose: CameraPose, point: Any) -> np.ndarray:
    place, _ = pose.project(np.asarray(point, float))
    return (np.array([place[0], -place[1]]) + 1.0) * 0.5 * SIZE


def test_a_goal_is_marked_where_it_is(jetbots: Callable[..., VectorEnv]) -> None:
    # the camera stands in front of the robot, to its right: what is to the robot's left is to the right in the picture
    envs = jetbots(render_mode='rgb_array')
    envs.core.state.commands['goal'][0] = 0.3, 0.3
    near_goal = green(envs.render()[0])
    envs.core.state.commands['goal'][0] = -0.3, -0.3
    assert near_goal[0] > 0.55 * SIZE[0] and green(envs.render()[0])[0] < 0.45 * SIZE[0]


def test_arrows_point_where_the_robot_is_told_to_go(jetbots: Callable[..., VectorEnv]) -> None:
    still = (0.0, 0.0)
    speeds = {'forward': (0.5, 0.5), 'lateral': still, 'yaw_rate': still, 'standing': 0.0}
    envs = jetbots({'goal': CommandTermCfg(term='velocity', params=speeds)}, render_mode='rgb_array')
    for forward, lateral in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)):
        envs.core.state.commands['goal'][0] = forward, lateral, 0.0
        pose = camera_of(envs)
        way = pixel(pose, np.array([forward, lateral, 0.0]) * 0.1) - pixel(pose, np.zeros(3))
        (picture,) = envs.render()
        offset = green(picture) - np.array(SIZE) / 2
        assert offset[0] * way[0] > 0.0


@pytest.mark.slow
def test_lists_have_a_picture_of_each_step(jetbots: Callable[..., VectorEnv]) -> None:
    envs = jetbots(render_mode='rgb_array_list')
    for _ in range(3):
        envs.step(np.array([[0.5, 0.0]]))
    (pictures,) = envs.render()
    assert len(pictures) == 4 and pictures[0].shape == (*SIZE[::-1], 3)
    assert not np.array_equal(pictures[0], pictures[-1]) and envs.render() == ([],)


def test_depth_is_the_distance(jetbots: Callable[..., VectorEnv]) -> None:
    envs = jetbots(render_mode='depth_array', camera=((0.0, 0.0, 2.0), (0.0, 0.01, 0.0)))
    (depth,) = envs.render()
    assert depth.shape == SIZE[::-1] and depth.dtype == np.float32
    assert depth[0, 0] == pytest.approx(2.0, abs=0.02) and depth[120, 160] < 1.98  # the floor; the robot


@pytest.mark.slow
def test_cameras_by_name(jetbots: Callable[..., VectorEnv]) -> None:
    pictures = [jetbots(render_mode='rgb_array', camera=camera).render()[0] for camera in (None, 'follow:jetbot')]
    assert np.array_equal(*pictures)
    top = jetbots(render_mode='rgb_array', camera='top')
    top.core.state.commands['goal'][0] = 1.5, 0.0
    ahead = green(top.render()[0])
    top.core.state.commands['goal'][0] = 0.0, 1.5
    left = green(top.render()[0])
    assert ahead[0] > left[0] + 30 and left[1] < ahead[1] - 30  # x to the right, y upwards
    mounted = jetbots(render_mode='rgb_array', camera='jetbot_camera').render()[0]
    assert mounted.std() > 5.0 and not np.array_equal(mounted, pictures[0])


def test_what_is_wrong_is_named(jetbots: Callable[..., VectorEnv]) -> None:
    with pytest.raises(
        ValueError, match=r"render_mode='rgb_aray': expected None or 'human', .*did you mean 'rgb_array'"
    ):
        VectorEnv(cart_pole.config(), render_mode='rgb_aray')
    with pytest.raises(ValueError, match='width and height must be positive'):
        VectorEnv(cart_pole.config(), render_mode='rgb_array', width=0)
    with pytest.raises(
        ValueError, match="camera 'eye': expected 'follow:ROBOT', 'side', 'front', 'top' or .*jetbot_camera"
    ):
        jetbots(render_mode='rgb_array', camera='eye').render()
    with pytest.raises(KeyError, match="'jetbott'"):
        jetbots(render_mode='rgb_array', camera='follow:jetbott').render()


def test_humans_see_it_in_a_browser(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip('viser')
    env = gym.make('InternUtopia/CartPole-v0', render_mode='human', threads=1)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    address = re.search(r'viewer: open (\S+)', capsys.readouterr().out)
    assert address is not None and env.render() is None
    with urllib.request.urlopen(address[1]) as page:
        assert page.status == 200
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize('env_id, space', [('CartPole-v0', 'Box'), ('CartPole-Discrete-v0', 'Discrete')])
def test_gymnasium_passes_sizes_on(env_id: str, space: str) -> None:
    env: Any = gym.make(f'InternUtopia/{env_id}', render_mode='rgb_array', width=64, height=48, threads=1)
    assert type(env.action_space).__name__ == space and env.metadata['render_modes'] == MODES
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.render().shape == (48, 64, 3)
    env.close()
    envs: Any = gym.make_vec(f'InternUtopia/{env_id}', num_envs=2, render_mode='rgb_array', width=64, height=48)
    envs.reset(seed=0)
    assert [picture.shape for picture in envs.render()] == [(48, 64, 3)] * 2
    envs.close()


def test_pushes_of_the_discrete_cart_pole() -> None:
    envs = VectorEnv(cart_pole.config(2, 0, start=0.0, discrete=True))
    obs, _ = envs.reset(seed=0)
    for _ in range(5):
        obs, *_ = envs.step(np.array([0, 1]))
    envs.close()
    assert obs[0, 2] < -0.5 < 0.5 < obs[1, 2]  # speeds of the carts


@pytest.mark.slow
def test_record_video_writes_a_film(tmp_path: Path) -> None:
    pytest.importorskip('moviepy')
    env: Any = gym.make('InternUtopia/CartPole-v0', render_mode='rgb_array', width=64, height=48, threads=1)
    env = gym.wrappers.RecordVideo(env, str(tmp_path), video_length=5, disable_logger=True)
    env.reset(seed=0)
    for _ in range(6):
        env.step(env.action_space.sample())
    env.close()
    (film,) = tmp_path.glob('*.mp4')
    assert film.read_bytes()[4:8] == b'ftyp'


def test_human_rendering_opens_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip('pygame')
    monkeypatch.setenv('SDL_VIDEODRIVER', 'dummy')
    env: Any = gym.make('InternUtopia/CartPole-v0', render_mode='rgb_array', width=64, height=48, threads=1)
    env = gym.wrappers.HumanRendering(env)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert pygame.surfarray.array3d(env.window).std() > 1.0
    env.close()


@pytest.mark.slow
def test_commands_without_a_marker_show_nothing() -> None:
    config = cart_pole.config(1, 0)
    learning = config.task_configs[0].learning
    assert isinstance(learning, LearningCfg)
    told = learning.update(commands={'x': CommandTermCfg(term='uniform', params={'low': [0.0], 'high': [1.0]})})
    pictures = []
    for each in (learning, told):
        envs = VectorEnv(config, each, render_mode='rgb_array', width=64, height=48)
        envs.reset(seed=0)
        pictures.append(envs.render()[0])
        envs.close()
    assert np.array_equal(*pictures)
