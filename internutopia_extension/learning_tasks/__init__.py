"""Ready-made tasks for learning: one module each with a function `config` to train with or to start from."""
