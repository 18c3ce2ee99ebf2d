"""Worlds of batches: what all engines share that step many envs of one model at once."""
