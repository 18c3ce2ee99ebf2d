"""A benchmark of manipulation in the manner of packages for 2.x: robot on a nested USD, five kinds of actions, evaluator.

It is written as for Isaac Sim and knows nothing of what is new since; `python -m manipulation_client.evaluate OUT MODE`.
"""
