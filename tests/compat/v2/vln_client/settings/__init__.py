"""Settings that can be evaluated: each module has `settings`."""
