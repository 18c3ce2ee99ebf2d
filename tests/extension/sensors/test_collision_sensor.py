"""Collision sensor: what carries feet is ground, however steep it is where it is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from markers import slow_but

from internutopia.config.robot import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia_extension.configs.sensors import CollisionSensorCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

# A foot of 0.2 m with a post and a hand on it, 0.8 m high: the hand reaches as far as the foot
STATUE = """
<worldbody><body name="foot" pos="0 0 0.05"><freejoint/>
  <geom type="box" size="0.1 0.1 0.05" mass="5" friction="0.01 0 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 0.7" size="0.02" mass="0.1"/>
  <body name="hand" pos="0 0 0.75"><geom type="box" size="0.1 0.02 0.02" mass="0.01"/></body></body></worldbody>"""
AGAINST = 0.2  # [m], where a box of 0.2 m touches the foot of a statue at the origin
PRESSED = '<option gravity="2 0 -9.81"/>'  # [m/s2]: everything leans against what is in front


@BaseRobot.register('Statue')
class Statue(BaseRobot):
    """Stands."""

    batched = True
    feet = ('foot',)


@BaseRobot.register('StatueWithoutFeet')
class StatueWithoutFeet(Statue):
    """A thing that is not made to step on anything."""

    feet = ()


def thing(height: float, low: float = 0.0) -> str:
    """A box in front of the statue, from one height to another [m]."""
    half, middle = 0.5 * (height - low), 0.5 * (height + low)
    return f'<geom type="box" size="0.1 1 {half}" pos="{AGAINST} 0 {middle}"/>'


THINGS = {
    'nothing': ('', False),
    'a step': (thing(0.11), False),
    'a step that is too high': (thing(0.18), True),
    'a box that is too high': (thing(0.4), True),
    'a wall': (thing(3.0), True),
    'the edge of a table': (thing(0.81, 0.78), True),
    'a step before a wall': (thing(0.11) + thing(3.0).replace(str(AGAINST), '0.5'), False),
}


@pytest.fixture
def stand(write_model: Any, run: Any) -> Callable[..., bool]:
    """Lets a statue stand before something; returns whether it collided in one of the steps."""

    def stand(things: str, kind: str = 'Statue', **fields: Any) -> bool:
        floor = '<geom type="plane" size="9 9 1" friction="0.01 0 0"/>'
        scene = write_model('scene', f'{PRESSED}<worldbody>{floor}{things}</worldbody>')
        robot = RobotCfg(
            type=kind,
            name='statue',
            prim_path='/statue',
            usd_path=write_model('statue', STATUE),
            sensors=[CollisionSensorCfg(**fields)],
        )
        env = run(robot, scene_asset_path=scene, substeps=1)
        sensed = [env.step([{}])[0][0]['statue']['sensors']['collision']['collided'] for _ in range(10)]
        return any(sensed)

    return stand


@pytest.mark.parametrize('kind', THINGS)
def test_what_a_foot_can_step_on_is_ground(stand, kind):
    things, collided = THINGS[kind]
    assert stand(things) == collided


def test_how_high_it_steps_is_configured(stand):
    assert stand(thing(0.12), step_height=0.0)
    assert stand(thing(0.3), step_height=0.1)
    assert not stand(thing(0.3), step_height=0.35)


def test_robots_without_feet_collide_with_all_that_is_steep(stand):
    assert stand(thing(0.12), kind='StatueWithoutFeet')
    assert not stand('', kind='StatueWithoutFeet')


@pytest.mark.slow
@pytest.mark.parametrize(('robot', 'scene'), slow_but(('aliengo', 'rough'), of=[('aliengo', 'rough'), ('h1', 'rough')]))
def test_rough_ground_is_ground(make_env: Callable[..., Env], robot: str, scene: str) -> None:
    """A robot that walks over bumps, of which some are steep where a foot meets them."""
    walker = WALKERS[robot]
    assert walker.walking is not None
    sensors = [CollisionSensorCfg(), CollisionSensorCfg(name='by_slope', step_height=0.0)]
    config = walker.standing(walker.walking).update(sensors=sensors)
    task = SingleInferenceTaskCfg(scene_asset_path=f'scenes/{scene}.xml', robots=[config])
    env = make_env(tasks=[task], env_num=1, sim={'physics_dt': '1/240', 'substeps': 5})
    env.reset()
    collided, steep = 0, 0
    for _ in range(300):
        obs: Any = env.step([{config.name: {'move_by_speed': (0.5, 0.0, 0.0)}}])[0]
        sensed = obs[0][config.name]['sensors']
        collided += sensed['collision']['collided']
        steep += sensed['by_slope']['collided']
    assert collided == 0 < steep
