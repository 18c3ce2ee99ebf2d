"""Runs that are resumed with another config: refused with what differs, unless forced."""

import datetime
import enum
import json
import subprocess
import sys

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import Config
from internutopia.config.config import RayDistributionCfg
from internutopia.core.episodes.config_digest import ConfigDigest
from internutopia.core.episodes.results import ResultsWriter
from internutopia.core.vec_env import Env


def resumed(config) -> frozenset[int]:
    """The episodes that are done when a config is resumed."""
    writer = ResultsWriter(config)
    writer.close()
    return writer.done


@pytest.mark.parametrize(
    ('fields', 'difference'),
    [
        ({'seed': 4}, 'seed: 3 -> 4'),
        ({'seed': None}, 'seed: 3 -> None'),
        ({'sim': {'physics_dt': 0.004}}, 'simulator.physics_dt: 0.005 -> 0.004'),
        ({'sim': {'substeps': 2}}, 'simulator.substeps: 1 -> 2'),
        ({'sim': {'contact': {'cone': 'elliptic'}}}, "simulator.contact.cone: None -> 'elliptic'"),
        ({'episode_order': 'cycle'}, "episode_order: 'once' -> 'cycle'"),
        ({'episodes': 5}, 'task_configs: 6 -> 5 entries'),
        ({'task': {'max_steps': 5}}, 'task_configs[0].max_steps: 1 -> 5'),
        ({'task': {'max_episode_steps': 2}}, 'task_configs[0].max_episode_steps: None -> 2'),
        ({'task': {'scene_asset_path': 'other.xml'}}, "task_configs[0].scene_asset_path: None -> 'other.xml'"),
        ({'task': {'metrics': []}}, 'task_configs[0].metrics: 1 -> 0 entries'),
        ({'task': {'goal': [1.0, 2.0]}}, 'task_configs[0].goal: nothing -> [1.0, 2.0]'),
        ({'compat': '2.x'}, "compat: '3.x' -> '2.x'"),
    ],
    ids=str,
)
def test_another_config_is_refused_with_what_differs(make_run, run, tmp_path, fields, difference):
    run(make_run(), 2)
    before = (tmp_path / 'r').read_bytes()
    with pytest.raises(ValueError) as raised:
        Env(make_run(**fields))
    assert f'{tmp_path / "r"}, line 1 and ' in str(raised.value)
    assert f'a result of another config: {difference}' in str(raised.value)
    assert "resume='force'" in str(raised.value) and 'metrics_save_path' in str(raised.value)
    assert (tmp_path / 'r').read_bytes() == before
    assert resumed(make_run())


def test_more_tasks_after_those_of_before_are_run_as_well(make_run, run, tmp_path):
    run(make_run())
    before = (tmp_path / 'r').read_bytes()
    assert resumed(make_run(episodes=8)) == frozenset(range(6))
    run(make_run(episodes=8))
    assert (tmp_path / 'r').read_bytes().startswith(before)
    assert resumed(make_run(episodes=8)) == frozenset(range(8))
    with pytest.raises(ValueError, match='8 -> 6 entries'):
        resumed(make_run())


def test_another_order_of_the_tasks_is_refused(make_run, run):
    config = make_run()
    run(config, 2)
    with pytest.raises(ValueError, match=r'task_configs\[0\].max_steps: 1 -> 3; task_configs\[2\].max_steps: 3 -> 1'):
        ResultsWriter(config.update(task_configs=config.task_configs[::-1]))


@pytest.mark.parametrize(
    'fields',
    [
        {'env_num': 3},
        {'env_offset_size': 20.0},
        {'sim': {'threads': 2}},
        {'sim': {'headless': False, 'device': 'cpu', 'webrtc': True}},
        {'sim': {'physics_dt': 0.005}},
    ],
    ids=str,
)
def test_what_changes_no_result_may_differ(make_run, run, fields):
    run(make_run(), 2)
    assert resumed(make_run(**fields))


def test_processes_may_differ(make_run, run):
    run(make_run(), 2)
    ray = RayDistributionCfg(proc_num=2)
    assert resumed(make_run().distribute(ray))
    with pytest.raises(ValueError, match='seed: 3 -> 4'):  # before anything is started
        Env(make_run(seed=4).distribute(ray))


def test_a_run_that_was_not_to_be_resumed_can_be(make_run, run):
    run(make_run(resume=False), 2)
    with pytest.raises(ValueError, match='seed: 3 -> 4'):
        ResultsWriter(make_run(seed=4))
    assert resumed(make_run())


def test_force_goes_on_and_the_file_says_so(make_run, run, tmp_path, caplog):
    run(make_run(), 2)
    first = len((tmp_path / 'r').read_text().splitlines())
    run(make_run(seed=4, resume='force'))
    assert "resume='force': " in caplog.text and 'seed: 3 -> 4' in caplog.text
    digests = [json.loads(line)['config'] for line in (tmp_path / 'r').read_text().splitlines()]
    old, new = (ConfigDigest(make_run(seed=seed)).digest for seed in (3, 4))
    assert digests == [old] * first + [new] * (6 - first)
    saved = json.loads((tmp_path / 'r.config.json').read_text())
    assert {digest: each['seed'] for digest, each in saved.items()} == {old: 3, new: 4}
    for seed in (3, 4):
        with pytest.raises(ValueError, match='another config'):
            ResultsWriter(make_run(seed=seed))
    assert len(resumed(make_run(seed=4, resume='force'))) == 6


@pytest.mark.parametrize('fields', [{'episodes': 2}, {'episode_order': 'shuffle', 'seed': 9}], ids=str)
def test_force_takes_any_difference(make_run, run, fields):
    run(make_run(), 2)
    assert resumed(make_run(**fields, resume='force'))


def test_force_does_not_take_damage(make_run, run, tmp_path):
    run(make_run(), 2)
    with (tmp_path / 'r').open('a') as file:
        file.write('{}\n')
    with pytest.raises(ValueError, match='damaged'):
        ResultsWriter(make_run(resume='force'))


@pytest.mark.parametrize('text', [None, '', 'no json', '[]', '{"a": 1}', '[' * 10**5])
def test_without_the_file_beside_it_another_config_is_refused_as_well(make_run, run, tmp_path, text):
    run(make_run(), 2)
    beside = tmp_path / 'r.config.json'
    beside.unlink() if text is None else beside.write_text(text)
    with pytest.raises(ValueError, match='another config; .*r.config.json, which says of which, is missing or damaged'):
        ResultsWriter(make_run(seed=4))
    run(make_run())
    assert ConfigDigest(make_run()).digest in json.loads(beside.read_text())


def test_a_file_that_starts_anew_forgets_the_config_before(make_run, run, tmp_path):
    run(make_run(), 2)
    (tmp_path / 'r').unlink()
    run(make_run(seed=4))
    assert len(json.loads((tmp_path / 'r.config.json').read_text())) == 1


def test_lines_of_an_older_version_need_force(make_run, run, tmp_path):
    run(make_run(), 3)
    path = tmp_path / 'r'
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(''.join(json.dumps(dict(list(line.items())[:10])) + '\n' for line in lines))
    with pytest.raises(ValueError, match='a result without its config, of an older version'):
        ResultsWriter(make_run())
    assert len(resumed(make_run(resume='force'))) == len(lines)


def test_where_the_file_beside_cannot_be_written_the_results_are(make_run, run, tmp_path, caplog):
    (tmp_path / 'r.config.json').mkdir()
    run(make_run())
    assert len((tmp_path / 'r').read_text().splitlines()) == 6
    assert 'r.config.json cannot be written' in caplog.text and len(list(tmp_path.iterdir())) == 2


def test_the_file_beside_it_stays_there_when_the_process_goes_elsewhere(make_run, make_env, monkeypatch, tmp_path):
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path)
    env = make_env(make_run(metrics_save_path='r'))
    env.reset()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    env.step([None] * 2)
    assert (tmp_path / 'r.config.json').is_file() and not list((tmp_path / 'elsewhere').iterdir())


def test_runs_of_other_configs_may_share_a_file_that_is_not_resumed(make_run, run, tmp_path):
    for seed in (3, 4, 3):
        run(make_run(resume=False, seed=seed, episodes=1))
    digests = [json.loads(line)['config'] for line in (tmp_path / 'r').read_text().splitlines()]
    assert digests[0] == digests[2] != digests[1]
    assert json.loads((tmp_path / 'r.config.json').read_text()).keys() == set(digests)
    with pytest.raises(ValueError, match='second result of episode 0'):
        ResultsWriter(make_run(resume='force'))


class Colour(enum.Enum):
    RED = 'red'


@pytest.mark.slow
def test_a_digest_is_the_same_in_every_process(make_task):
    code = (
        'from internutopia.config import Config, TaskCfg\n'
        'from internutopia.core.episodes.config_digest import ConfigDigest\n'
        "print(ConfigDigest(Config(task_configs=[TaskCfg(names={'a', 'b', 'c', 'd'}, inf=float('inf'))])).digest)\n"
    )
    digests = {subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout for _ in range(3)}
    assert len(digests) == 1 and len(digests.pop()) == 17


def test_values_of_all_kinds_count(make_config, make_task):
    kinds = [
        *(1, 1.5, True, None, 'a', [1], (1, 2), {'a': 1}, {3, 2}, float('inf'), float('nan')),
        *(np.float32(2.5), np.arange(3), Colour.RED, make_task, Colour, b'x', b'y', 2j, datetime.date(2026, 1, 2)),
    ]
    digests = [ConfigDigest(make_config(tasks=[make_task(extra=each)])).digest for each in kinds]
    assert len(set(digests)) == len(kinds)
    assert digests == [ConfigDigest(make_config(tasks=[make_task(extra=each)])).digest for each in kinds]
    assert ConfigDigest(make_config(tasks=[make_task(extra=object())])).digest == (
        ConfigDigest(make_config(tasks=[make_task(extra=object())])).digest
    )


def test_values_may_hold_themselves(make_config, make_task):
    digests = set()
    for _ in range(2):
        ring = [1, {'a': 2}]
        ring += [ring, {'ring': ring}]
        digests.add(ConfigDigest(make_config(tasks=[make_task(extra=ring)])).digest)
    assert len(digests) == 1


def test_assets_are_the_same_wherever_they_are(make_config, make_task, monkeypatch):
    digests = set()
    for folder in ('/one', '/two/assets'):
        monkeypatch.setattr('internutopia.core.episodes.config_digest.gm', type('gm', (), {'ASSET_PATH': folder}))
        tasks = [make_task(robots=[], scene_asset_path=f'{folder}/scenes/a.usd')]
        digests.add(ConfigDigest(make_config(tasks=tasks)).digest)
    assert len(digests) == 1


@pytest.mark.parametrize('value', ['Force', 'yess', 2, []])
def test_resume_is_a_bool_or_force(make_run, value):
    with pytest.raises(ValidationError, match='resume'):
        make_run(resume=value)
    assert Config.model_validate_json(make_run(resume='force').model_dump_json()).resume == 'force'
