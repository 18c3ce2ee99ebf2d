"""What can be evaluated: each module has `settings`."""
