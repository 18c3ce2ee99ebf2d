from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from jetbot_runs import STEPS, MakeConfig, record, speed

from internutopia.recording import Dataset


@pytest.mark.slow
def test_the_file_has_the_layout_that_robomimic_reads(tmp_path: Path, make_config: MakeConfig) -> None:
    record(tmp_path / 'data', make_config({'front': (64, 48)}), format='hdf5')
    dataset = Dataset(tmp_path / 'data')
    file: Any
    with h5py.File(tmp_path / 'data' / 'data.hdf5') as file:
        data = file['data']
        assert data.attrs['total'] == sum(STEPS)
        env = json.loads(data.attrs['env_args'])
        assert (env['env_name'], env['type']) == ('FiniteStepTask', 2)
        assert env['env_kwargs'] == {'fps': 60, 'robots': ['JetbotRobot']}
        assert sorted(data) == ['demo_0', 'demo_1', 'demo_2']
        assert file['mask/all'][()].tolist() == [b'demo_0', b'demo_1', b'demo_2']
        assert file['mask/success'].shape == (0,)
        for number, steps in enumerate(STEPS):
            demo = data[f'demo_{number}']
            assert demo.attrs['num_samples'] == steps
            np.testing.assert_array_equal(demo['actions'], [speed(number, step) for step in range(steps)])
            assert demo['dones'][()].tolist() == [0] * (steps - 1) + [1]
            assert demo['rewards'].shape == (steps,)
            np.testing.assert_array_equal(demo['states'], dataset[number].states.rows('state')[:-1])
            observed = {name: each.shape for name, each in demo['obs'].items()}
            assert observed == {
                'jetbot_position': (steps, 3),
                'jetbot_orientation': (steps, 4),
                'jetbot_joint_positions': (steps, 2),
                'jetbot_joint_velocities': (steps, 2),
                'jetbot_front_image': (steps, 48, 64, 3),
            }
            for name in ('jetbot_position', 'jetbot_joint_positions'):
                now, then = demo['obs'][name], demo['next_obs'][name]
                np.testing.assert_array_equal(then, [*now[1:], now[-1]])
            assert sorted(demo['next_obs']) == sorted(set(observed) - {'jetbot_front_image'})
            pictures = dataset[number].raw_frames('jetbot/sensors/front/rgba')
            np.testing.assert_array_equal(demo['obs/jetbot_front_image'], pictures)
            assert demo['obs/jetbot_front_image'].dtype == np.uint8


def test_masks_name_the_episodes_that_succeed_and_numbers_are_vectors(
    tmp_path: Path, make_config: MakeConfig, monkeypatch
) -> None:
    from internutopia_extension.tasks import FiniteStepTask

    observe = FiniteStepTask.get_observations

    def with_charge(task: Any) -> Any:
        obs = observe(task)
        obs['jetbot']['charge'] = 0.75
        return obs

    monkeypatch.setattr(FiniteStepTask, 'get_observations', with_charge)
    monkeypatch.setattr(FiniteStepTask, 'calculate_metrics', lambda task: {'success': task.env_id == 1})
    record(tmp_path / 'data', make_config(), format='hdf5')
    file: Any
    with h5py.File(tmp_path / 'data' / 'data.hdf5') as file:
        assert file['mask/success'][()].tolist() == [b'demo_1']
        assert [bool(file[f'data/demo_{number}'].attrs['success']) for number in range(3)] == [False, True, False]
        np.testing.assert_array_equal(file['data/demo_0/obs/jetbot_charge'], np.full((STEPS[0], 1), 0.75))
