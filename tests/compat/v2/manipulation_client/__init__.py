"""A benchmark of manipulation in the manner of packages for 2.x.

It has a robot on a nested USD, five kinds of actions, and an evaluator, `manipulation_client.evaluate OUT MODE`.
"""
