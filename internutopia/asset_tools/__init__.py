"""Asset tools: what the commands `internutopia assets` do, as functions."""
