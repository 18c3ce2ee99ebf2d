"""Asset tools: the commands `internutopia assets` as functions."""
