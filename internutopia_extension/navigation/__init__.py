"""Evaluation of navigation: robots with ready-made configs, baseline policies, the loop over episodes."""
