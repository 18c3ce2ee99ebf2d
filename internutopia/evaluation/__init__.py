"""Evaluation: the loop in which policies of any origin run episodes, suites of tasks, protocols, figures."""
