"""Command that runs the `settings` of a module: `python -m vln_client.evaluate vec_env --data ... --output ...`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.vec_env import Env

from . import import_extensions
from .agent import Agent
from .collector import Collector
from .dataset import FLASH_TYPES, Dataset
from .evaluator import Evaluator
from .records import Records


def evaluate(settings: dict[str, Any], data: Path, output: Path, limit: int | None = None) -> dict[str, Any]:
    """Run the episodes of a folder that have no result yet; the means over all that have one.

    Args:
        settings: see the files in `settings`.
        data: where episodes and assets are.
        output: where results go.
        limit: how many episodes to run at most.
    """
    records = Records(output)
    collector = Collector(output / 'episodes.lmdb') if settings.get('collect') else None
    done = records.done() if collector is None else collector.done()
    dataset = Dataset(data, settings['split'], done, limit)
    if dataset.episodes:
        env = Env(make_config(settings, dataset))
        _run(env, settings['controller'], records, collector)
        env.close()
    if collector is not None:
        collector.close()
    return records.merge()


def make_config(settings: dict[str, Any], dataset: Dataset) -> Config:
    """The config of a run; the client's classes are registered after it is built."""
    env_num = settings['env_num']
    env_settings = settings['env_settings'] | {'dataset': dataset, 'rank': 0, 'local_rank': 0, 'world_size': 1}
    spread = env_settings.get('distribution_config')
    config = Config(
        simulator=SimConfig(**env_settings),
        env_num=env_num,
        env_offset_size=100,
        task_configs=dataset.task_configs(settings),
    )
    if spread is not None:
        config = config.distribute(RayDistributionCfg(**spread))
    import_extensions()
    return config


def _run(env: Env, controller: str, records: Records, collector: Collector | None) -> None:
    def on_end(env_id: int, data: dict[str, Any], figures: dict[str, Any]) -> None:
        records.add(data['path_key'], figures)
        if collector is not None:
            collector.save(env_id, data['path_key'], figures)

    agent = Agent('move_by_flash' if controller in FLASH_TYPES else 'move_by_discrete')
    on_action = {} if collector is None else {'on_action': collector.add}
    Evaluator(env, agent.act, on_end=on_end, **on_action).run()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('settings')
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--output', type=Path, required=True)
    parser.add_argument('--limit', type=int)
    arguments = parser.parse_args()
    settings = importlib.import_module(f'vln_client.settings.{arguments.settings}').settings
    print(evaluate(settings, arguments.data, arguments.output, arguments.limit))


if __name__ == '__main__':
    main()
