"""The device that tests of `mujoco_warp` run on: its CPU device, or what INTERNUTOPIA_TEST_DEVICE says (`cuda:0`)."""

import os

DEVICE = os.environ.get('INTERNUTOPIA_TEST_DEVICE', 'cpu')
