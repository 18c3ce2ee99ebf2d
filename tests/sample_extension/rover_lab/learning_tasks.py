"""Learning task: drive to the beacon. Ids are in `TASKS`, which the entry point of the package names."""

from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia.core.config import Config, SimConfig
from rover_lab.configs import RoverCfg, RoverSpeedControllerCfg, RoverTaskCfg

TASKS = {
    'RoverLab/Drive-v0': (__name__, {}),
    'RoverLab/Crawl-v0': (__name__, {'gain': 0.1}),
}


def config(num_envs: int = 1, seed: int | None = None, *, gain: float = 1.0, threads: int | None = None) -> Config:
    speed = RoverSpeedControllerCfg(name='speed', type='BatchRoverSpeedController', gain=gain)
    learning = LearningCfg(
        action=ActionCfg(controller='speed', scale=1.0),
        observations=[ObservationTermCfg(term='base_position')],
        rewards=[RewardTermCfg(term='forward_velocity')],
    )
    return Config(
        simulator=SimConfig(physics_dt=1 / 100, threads=threads),
        env_num=num_envs,
        seed=seed,
        episode_order='cycle',
        metrics_save_path=None,
        task_configs=[
            RoverTaskCfg(robots=[RoverCfg(type='BatchRover', controllers=[speed])], learning=learning, max_steps=1000)
        ],
    )
