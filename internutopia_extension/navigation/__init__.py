"""Evaluation of navigation: robots that are ready for it, policies to compare with, the loop over episodes."""
