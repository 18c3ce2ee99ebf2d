"""Demos under their names of 2.x: `python -m internutopia.demo.<name>`.

Robots that go somewhere by themselves: `aliengo_locomotion`, `gr1_locomotion`, `h1_locomotion`, `h1_traveled_distance`,
`jetbot_locomotion`; an arm at work: `franka_manipulation`; robots that a person moves: `g1_locomotion`, `gr1_teleop`,
`franka_manipulation_mocap_teleop`. Each takes `--steps` and `--picture`, and ends by itself without a terminal.
"""
