"""Hooks for other versions of InternUtopia: this version's are the default, and run-time data, not branches."""

from __future__ import annotations

import pytest

from internutopia.util import conventions
from internutopia.util.conventions import Conventions, conventions_of


class Older(Conventions):
    label = 'older'

    @classmethod
    def select_fields(cls, config, values):
        return {name: value for name, value in values.items() if name != 'obsolete'}

    def columns(self, results, runner, env_ids=None):
        obs, reward, terminated, truncated, info = results
        return super().columns((obs, [7.0] * len(reward), terminated, truncated, info), runner, env_ids)


@pytest.mark.parametrize('version', ['3.x', '1.x', None, ['2.x']])
def test_a_version_without_conventions_has_those_of_this_one(version):
    assert conventions_of(version) is Conventions


def test_2x_is_registered_by_the_package():
    assert conventions_of('2.x').label == "compat='2.x'"


def test_this_version_changes_nothing():
    here, spec = Conventions(None), object()
    assert here.scene(spec) is spec and here.reserves_gpus('cpu') and not here.takes_raw_lengths(2.0)
    assert here.reset([2, 0], lambda ids: [int(i) for i in ids], lambda ids: (list(ids), list(ids))) == ([2, 0], [2, 0])
    results = [1, 6], [2, 7], [3, 8], [4, 9], [5, 10]
    assert here.columns(results, None) == results
    assert Conventions.select_fields(dict, {'a': 1}) == {'a': 1}


def test_a_registered_version_changes_what_a_run_returns(make_env, make_config, monkeypatch):
    monkeypatch.setitem(conventions.VERSIONS, '2.x', f'{__name__}:Older')
    env = make_env(compat='2.x')
    env.reset()
    assert env.step([{}, {}])[1] == [7.0, 7.0]
    assert make_config(simulator={'obsolete': 1}, compat='2.x').compat == '2.x'
