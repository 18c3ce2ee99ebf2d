"""Dry run of a walking policy that was trained elsewhere: two seconds on flat ground, in its own envs.

A YAML file with joints, gains or inputs in a wrong order is a valid file. What gives it away is the robot: it falls, or
shakes, or walks otherwise than commanded. So the policy is tried (`trials.py`), and if it does not do as told, what
people get wrong is undone, one thing at a time (`mistakes.py`), and tried as well.
"""
