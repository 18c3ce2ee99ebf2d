"""Pictures that a learner sees through a camera, of either renderer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from internutopia.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia.util.arrays import to_host
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import IMUCfg, RepCameraCfg

W, H = 16, 12
# slides along x at a height of 0.3 m, and looks ahead
CART = """
<worldbody>
  <body name="cart" pos="0 0 0.3"><joint name="drive" type="slide" axis="1 0 0"/><geom size="0.05" mass="1"/>
    <camera name="eye" pos="0.1 0 0" xyaxes="0 -1 0 0 0 1" fovy="60"/>
  </body>
</worldbody>"""
CUBE = DynamicCubeCfg(name='cube', prim_path='/cube', position=(2.0, 0.0, 0.3), scale=(0.4, 0.6, 0.6), color=(1, 0, 0))
FACE = 1.8 - 0.1  # m, from the camera to the cube
OPENGL = {'backend': 'mujoco'}
RAYTRACE = {'backend': 'mujoco_warp', 'renderer': 'raytrace'}


@pytest.fixture
def make_seeing(make_config: Any, make_task: Any, write_model: Any, opengl: None) -> Iterator[Callable[..., VectorEnv]]:
    """Makes a VectorEnv of two carts that see a red cube, with terms of the camera as observations."""
    made: list[VectorEnv] = []

    def make(
        *terms: dict[str, Any], sim: dict[str, Any], scenes: Sequence[str] = ('floor',) * 2, **options: Any
    ) -> VectorEnv:
        robot = GenericRobotCfg(
            name='cart',
            usd_path=write_model('cart', CART),
            stiffness=1e4,
            damping=1e3,
            controllers=[JointControllerCfg(name='joints', joint_names=['drive'])],
            sensors=[RepCameraCfg(name='eye', prim_path='cart/eye', resolution=(W, H)), IMUCfg()],
        )
        fields = {'robots': [robot], 'objects': [CUBE], 'type': 'SingleInferenceTask', 'max_episode_steps': 3}
        tasks = [make_task(scene, **fields) for scene in scenes]
        config = make_config(tasks=tasks, env_num=2, sim={'substeps': 4, **sim}, episode_order='cycle', seed=0)
        observations = [{'term': 'camera', 'params': {'name': 'eye', **params}} for params in terms]
        learning = {'action': {'controller': 'joints'}, 'observations': observations}
        made.append(VectorEnv(config, LearningCfg.model_validate(learning), **options))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    'sim, arrays',
    [(OPENGL, 'numpy'), (RAYTRACE, 'numpy'), (RAYTRACE, 'torch'), ({'backend': 'mujoco_warp'}, 'torch')],
    ids=['opengl', 'raytrace', 'raytrace-torch', 'opengl-torch'],
)
def test_pictures_are_observations(make_seeing: Any, sim: dict[str, Any], arrays: str) -> None:
    envs = make_seeing({'data': 'rgb'}, {'data': 'depth', 'max_depth': 5.0}, sim=sim, arrays=arrays)
    obs = to_host(envs.reset()[0])
    assert obs.shape == (2, H * W * 4) and obs.dtype == np.float32
    rgb, depth = obs[:, : H * W * 3].reshape(2, H, W, 3), obs[:, H * W * 3 :].reshape(2, H, W)
    red = rgb[:, H // 2, W // 2]
    assert (red[:, 0] > 0.4).all() and (red[:, 1:] < 0.5 * red[:, :1]).all() and rgb.max() <= 1.0
    np.testing.assert_allclose(depth[:, H // 2, W // 2], FACE, atol=2e-3)
    assert (depth[:, 0] == 5.0).all()  # nothing up there
    for _ in range(2):
        obs = to_host(envs.step(np.array([[0.2], [-0.1]], np.float32))[0])
    depth = obs[:, H * W * 3 :].reshape(2, H, W)[:, H // 2, W // 2]
    moved = to_host(envs.core.state.joint_positions)[:, 0]
    assert moved[0] > 0.01 > -0.005 > moved[1]
    np.testing.assert_allclose(depth, FACE - moved, atol=2e-3)
    envs.step(np.zeros((2, 1), np.float32))  # the last of the episode
    obs = to_host(envs.step(np.zeros((2, 1), np.float32))[0])
    np.testing.assert_allclose(obs[:, H * W * 3 :].reshape(2, H, W)[:, H // 2, W // 2], FACE, atol=2e-3)


LABELLED = """
<custom><text name="semantics:left" data="{left}"/><text name="semantics:right" data="{right}"/></custom>
<worldbody>
  <geom name="left" type="box" size="0.1 0.5 1" pos="1.1 0.5 0.3"/>
  <geom name="right" type="box" size="0.1 0.2 1" pos="1.1 -0.2 0.3"/>
</worldbody>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    'sim, arrays',
    [(OPENGL, 'numpy'), (RAYTRACE, 'numpy'), (RAYTRACE, 'torch')],
    ids=['opengl', 'raytrace', 'raytrace-torch'],
)
def test_segmentation_is_an_observation(
    make_seeing: Any, write_model: Any, caplog: Any, sim: dict[str, Any], arrays: str
) -> None:
    """Two envs in different scenes: the same category has the same number in both, ids are those of each scene."""
    scenes = [
        write_model('a', LABELLED.format(left='sofa', right='chair')),
        write_model('b', LABELLED.format(left='chair', right='lamp')),
    ]
    unknown = f'lump of {sim["backend"]} {arrays}'  # warned of once in a process
    terms = [
        {'data': 'semantic_segmentation', 'categories': ['chair', 'cube', 'sofa', 'lamp', unknown]},
        {'data': 'semantic_segmentation'},
        {'data': 'instance_segmentation'},
    ]
    envs = make_seeing(*terms, sim=sim, scenes=scenes, arrays=arrays)
    obs = to_host(envs.reset()[0])
    assert obs.dtype == np.float32 and obs.shape == (2, 3 * H * W)
    numbers, kinds, things = (picture[:, H // 2] for picture in obs.reshape(2, 3, H, W).transpose(1, 0, 2, 3))
    left, right, nothing = W // 4, W // 2 + 1, W - 1
    assert numbers[:, [left, right, nothing]].tolist() == [[3, 1, 0], [1, 4, 0]]
    assert kinds[:, [left, right, nothing]].tolist() == [[2, 3, 0], [2, 3, 0]]
    assert things[:, [left, right, nothing]].tolist() == [[2, 3, 0], [2, 3, 0]]
    again = to_host(envs.step(np.zeros((2, 1), np.float32))[0])
    np.testing.assert_array_equal(again, obs)
    warnings = [record.getMessage() for record in caplog.records if 'nothing is labelled' in record.getMessage()]
    assert warnings == [
        f"camera 'eye': nothing is labelled as {unknown!r} in any env; known: 'chair', 'cube', 'lamp', 'sofa'"
    ]


def test_errors_name_what_there_is(make_seeing: Any) -> None:
    with pytest.raises(ValueError, match="robot 'cart' has no batched camera sensor 'eyes'; .*'eye'"):
        make_seeing({'name': 'eyes'}, sim=OPENGL).reset()
    with pytest.raises(ValueError, match="robot 'cart' has no batched camera sensor 'imu'"):
        make_seeing({'name': 'imu'}, sim=OPENGL).reset()
    with pytest.raises(ValueError, match="term 'camera': data='rgbd': .*'rgb'"):
        make_seeing({'data': 'rgbd'}, sim=OPENGL).reset()
    with pytest.raises(ValueError, match="'depth' has no categories, 'semantic_segmentation' has"):
        make_seeing({'data': 'depth', 'categories': ['cube']}, sim=OPENGL).reset()
