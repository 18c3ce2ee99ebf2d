import logging

import pytest

from internutopia import util
from internutopia.util import did_you_mean, has_display, is_in_container, log, remove_suffix


@pytest.mark.parametrize(
    ('name', 'expected'), [('h1_0', 'h1'), ('h1_1_12', 'h1_1'), ('h1', 'h1'), ('h1_', 'h1_'), ('h_1a', 'h_1a')]
)
def test_remove_suffix(name, expected):
    assert remove_suffix(name) == expected


def test_did_you_mean_offers_close_matches_or_everything():
    assert did_you_mean('frank', ['h1', 'franka']) == "did you mean 'franka'?"
    assert did_you_mean('spot', ['h1', 'franka']) == "known: 'franka', 'h1'"
    assert did_you_mean(3, []) == 'known: none'
    assert did_you_mean('lr', ['gamma', 'learning_rate']) == "did you mean 'learning_rate'?"
    assert did_you_mean('num_envs', ['env_num', 'env_offset_size']) == "did you mean 'env_num'?"
    assert did_you_mean('CartPole', ['Utopia/CartPole-v0', 'Utopia/Ant-v0']) == "did you mean 'Utopia/CartPole-v0'?"


def test_log_is_the_projects_logger():
    assert log is logging.getLogger('internutopia')


def test_display_is_what_the_session_announces(monkeypatch):
    monkeypatch.setattr(util.sys, 'platform', 'linux')
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    assert not has_display()
    monkeypatch.setenv('DISPLAY', ':0')
    assert has_display()


def test_kubernetes_counts_as_a_container(monkeypatch):
    monkeypatch.setenv('KUBERNETES_SERVICE_HOST', '10.0.0.1')
    assert is_in_container()
