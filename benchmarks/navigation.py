"""Navigation: walking robots go along paths at 1 m/s in built-in scenes, 100 in each.

    python benchmarks/navigation.py h1 g1 --episodes 100
    python benchmarks/navigation.py h1 --look-ahead 0.5
    python benchmarks/navigation.py aliengo --scenes course --policy rough

In warehouse and apartment a path has a start and three points, 1 to 4 m apart, and keeps 0.6 m clear of everything. On
the course it leads straight over 20 m of random ground, a slope and stairs, from another place next to its middle each
time. A robot that is at its end within the controller's threshold has arrived; one whose base is below 0.6 of its
height above the mean ground around it, or leans by more than 0.9 rad, has fallen. The error is the distance of the base
from the path, seen from above.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from internutopia import Config, Env, SimConfig
from internutopia.config.learning import ElevationCfg
from internutopia.rl.elevation import ElevationMap
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

SCENES = {  # file, and what is looked at of it along x and y [m]
    'warehouse': ('scenes/warehouse.xml', (-4.5, 4.5), (-4.5, 4.5)),
    'apartment': ('scenes/apartment.usda', (-3.5, 3.5), (-3.5, 3.5)),
    'course': ('scenes/course.xml', (-1.0, 21.0), (-2.0, 2.0)),
}
INDOORS = ('warehouse', 'apartment')
CLEARANCE = 0.6  # m
POINTS, LEGS = 3, (1.0, 4.0)  # of a path: number, and lengths between them [m]
LEAN = 0.9  # rad, that a robot has fallen with
# m, around a base, where the ground is looked at: on stairs that under the base itself is not what its feet are on
AROUND = np.stack(np.meshgrid(np.arange(-0.3, 0.31, 0.1), np.arange(-0.3, 0.31, 0.1)), axis=-1).reshape(-1, 2)
COURSE, ASIDE = 20.0, 0.8  # m: length of the course, and how far from its middle paths may be
LIMIT = 90.0  # s, of an episode
ENVS = 20
STEP = 5  # substeps of 1/240 s


class WalkTaskCfg(SingleInferenceTaskCfg):
    """A path to walk along."""

    path: list[tuple[float, float, float]] = []
    """Its points (x, y, 0), the start first, m."""


def config(tasks: list[WalkTaskCfg], envs: int) -> Config:
    """Envs for these tasks."""
    return Config(
        simulator=SimConfig(physics_dt=1 / 240, substeps=STEP),
        env_num=envs,
        task_configs=[*tasks],
        metrics_save_path='none',
    )


def robot_at(name: str, place: tuple[float, float], policy: str | None = None, **fields: float) -> Any:
    """The robot at (x, y) with its navigation controllers, which walk by this policy, a name or a file.

    `fields` are those of `move_along_path` that are others than by default.
    """
    walker = WALKERS[name]
    module = import_module(type(walker.config).__module__)
    walk, along = module.move_by_speed_cfg, module.move_along_path_cfg
    if policy is not None:
        walk = walk.update(**{'policy' if policy in walk.policies else 'policy_weights_path': policy})
        (to_point,) = along.sub_controllers
        along = along.update(sub_controllers=[to_point.update(sub_controllers=[walk])])
    controllers = [walk, along.update(**fields)]
    return walker.config.update(name='robot', position=(*place, walker.root_height), controllers=controllers)


def ground_of(name: str, scene: str) -> ElevationMap:
    """Heights of what is below in a scene, looked through the robot."""
    file, x, y = SCENES[scene]
    env = Env(config([WalkTaskCfg(scene_asset_path=file, robots=[robot_at(name, (0.0, 0.0))])], 1))
    env.reset()
    world: Any = env.runner.world
    cfg = ElevationCfg(x=x, y=y, cell=0.1, top=4.0)
    ground = ElevationMap(world, world.articulation('robot', 0), 0, cfg)
    env.close()
    return ground


def free_places(ground: ElevationMap, half: float) -> NDArray[np.float64]:
    """Places `(n, 2)` that are clear of everything, 0.1 m apart."""
    axis = np.arange(-half + 0.05, half, 0.1)
    places = np.stack(np.meshgrid(axis, axis, indexing='ij'), axis=-1).reshape(-1, 2)
    taken = places[np.abs(ground.heights(places.astype(np.float32))) > 0.03]
    inside = np.abs(places).max(axis=1) < half - CLEARANCE
    gaps = np.array([np.linalg.norm(taken - place, axis=1).min(initial=np.inf) for place in places])
    return places[inside & (gaps > CLEARANCE)]


def make_paths(ground: ElevationMap, scene: str, count: int) -> list[NDArray[np.float64]]:
    """Paths `(points, 2)` [m], the start first."""
    rng = np.random.default_rng(0)
    if scene in INDOORS:
        free = free_places(ground, SCENES[scene][1][1])
        return [random_path(free, rng) for _ in range(count)]
    along = np.linspace(0.0, COURSE, 11)
    return [np.stack([along, np.full_like(along, y)], axis=1) for y in rng.uniform(-ASIDE, ASIDE, count)]


def random_path(free: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A start and points `(POINTS + 1, 2)`, with straight ways between them."""

    def clear(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
        between = a + np.linspace(0.0, 1.0, 30)[:, None] * (b - a)
        return bool((np.linalg.norm(between[:, None] - free, axis=-1).min(axis=1) < 0.1).all())

    while True:
        path = [free[rng.integers(len(free))]]
        for _ in range(50):
            point = free[rng.integers(len(free))]
            if LEGS[0] <= np.linalg.norm(point - path[-1]) <= LEGS[1] and clear(path[-1], point):
                path.append(point)
                if len(path) == POINTS + 1:
                    return np.array(path)


def off_path(position: NDArray[np.floating], path: NDArray[np.float64]) -> float:
    """Distance of a place (x, y) from a polyline [m]."""
    starts, ways = path[:-1], np.diff(path, axis=0)
    along = ((position - starts) * ways).sum(axis=1) / (ways * ways).sum(axis=1)
    return float(np.linalg.norm(position - starts - along.clip(0.0, 1.0)[:, None] * ways, axis=1).min())


def walk(name: str, scene: str, episodes: int, policy: str | None, fields: dict[str, float]) -> None:
    """All episodes of a robot in a scene; prints what came out."""
    ground = ground_of(name, scene)
    paths = make_paths(ground, scene, episodes)
    tasks = [
        WalkTaskCfg(
            scene_asset_path=SCENES[scene][0],
            robots=[robot_at(name, (path[0, 0], path[0, 1]), policy, **fields)],
            path=[(x, y, 0.0) for x, y in path.tolist()],
        )
        for path in paths
    ]
    env = Env(config(tasks, min(ENVS, episodes)))
    obs, configs = env.reset()
    lowest = 0.6 * WALKERS[name].base_height
    errors: list[float] = []
    worst, seconds, lengths, fallen, late = [], [], [], 0, 0
    limit = round(LIMIT * 240 / STEP)
    off: list[list[float]] = [[] for _ in obs]
    with Progress(transient=True) as progress:
        bar = progress.add_task(f'{name}, {scene}', total=len(tasks))
        while any(cfg is not None for cfg in configs):
            actions = [None if cfg is None else {'robot': {'move_along_path': [cfg.path[1:]]}} for cfg in configs]
            obs, *_ = env.step(actions)
            done = []
            for i, (cfg, env_obs) in enumerate(zip(configs, obs, strict=True)):
                if cfg is None:
                    continue
                robot = env_obs['robot']
                place = np.asarray(robot['position'], np.float32)
                off[i].append(off_path(place[:2], np.array(cfg.path)[:, :2]))
                arrived = robot['controllers']['move_along_path']['finished']
                # furniture is no ground: a robot that leans over a table has not fallen
                level = 0.0 if scene in INDOORS else ground.heights((place[:2] + AROUND).astype(np.float32)).mean()
                w, x, y, z = robot['orientation']
                down = place[2] < level + lowest or 1.0 - 2.0 * (x * x + y * y) < np.cos(LEAN)
                if not (arrived or down or len(off[i]) >= limit):
                    continue
                fallen, late = fallen + down, late + (not arrived and not down)
                errors += off[i]
                worst.append(max(off[i]))
                if arrived:
                    seconds.append(len(off[i]) * STEP / 240)
                    lengths.append(np.linalg.norm(np.diff(np.array(cfg.path), axis=0), axis=1).sum())
                off[i] = []
                done.append(i)
            if done:
                new_obs, new = env.reset(done)
                for i, cfg in zip(done, new, strict=True):
                    configs[i] = cfg
                progress.advance(bar, len(done))
    env.close()
    print(
        f'{name:13} {scene:10} arrived {len(seconds)}, fallen {fallen}, late {late} of {len(tasks)}; '
        f'error mean {np.mean(errors):.3f} m, worst of the median path {np.median(worst):.3f} m, of all '
        f'{max(worst):.3f} m'
    )
    if seconds:
        pace = np.array(lengths) / np.array(seconds)
        print(f'{"":24} {np.mean(seconds):.1f} s and {pace.mean():.2f} m/s per path of {np.mean(lengths):.1f} m')


def main() -> None:
    """Walk with the robots that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # others differ while they learn, or have no policy
    own = [name for name, walker in WALKERS.items() if walker.config.name == name and walker.walking]
    parser.add_argument('robots', nargs='*', choices=list(WALKERS), default=own)
    parser.add_argument('--scenes', nargs='+', choices=list(SCENES), default=list(INDOORS))
    parser.add_argument('--policy', help='policy to walk by: a name in move_by_speed_cfg.policies, or a file')
    parser.add_argument('--look-ahead', type=float, help='of move_along_path [m]; without it robots stop at each point')
    parser.add_argument('--episodes', type=int, default=100)
    parser.add_argument('--speed', type=float, help='that move_along_path walks at [m/s]')
    options = parser.parse_args()
    fields = {'look_ahead': options.look_ahead, 'forward_speed': options.speed}
    fields = {field: value for field, value in fields.items() if value is not None}
    import_extensions()
    for name in options.robots:
        for scene in options.scenes:
            walk(name, scene, options.episodes, options.policy, fields)


if __name__ == '__main__':
    main()
