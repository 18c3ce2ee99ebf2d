"""Sessions that are recorded: what is kept is what the person kept, with what the robot was told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('viser', reason='a session needs the extra `viewer`')
pytest.importorskip('h5py', reason='this format needs the extra `record`')

from devices import ScriptedDevice, moving, saying

from internutopia.core.vec_env import Env
from internutopia.recording import Dataset, Recorder
from internutopia.teleoperation import Session, Signal
from internutopia.viewer import attach


def test_a_recording_has_what_the_person_kept(franka: Env, tmp_path: Path):
    inputs = [
        *moving(0, 0, 1, steps=10),
        *saying(Signal.DISCARD),
        *moving(0, 1, 0, steps=20),
        *saying(Signal.GRIPPER, Signal.SUCCESS),
        *moving(1, 0, 0, steps=5),
        *saying(Signal.RESET, Signal.END),
    ]
    folder = tmp_path / 'dataset'
    with attach(franka) as viewer, Recorder(folder, franka.config, 'hdf5') as recorder:
        recorder.attach(franka)
        Session(franka, 'franka', [ScriptedDevice(inputs)], viewer, recorder).run()
    dataset = Dataset(folder)
    assert dataset.episode_ids == [0, 1]  # each once
    success, failure = dataset
    assert [each.facts['success'] for each in dataset] == [True, False]
    assert (success.steps, failure.steps) == (22, 6)  # with one that a signal was said in
    arm = success.action_rows()['franka/arm_ik_controller']
    # the first step is the one in which the episode that was discarded ended
    way = 0.25 / 60 * np.arange(21)
    np.testing.assert_allclose(arm[:21, 1] - arm[0, 1], way, atol=1e-4)
    gripper = success.action_rows()['franka/gripper_controller']
    assert gripper[0] == 1.0 and gripper[-1] == -1.0
