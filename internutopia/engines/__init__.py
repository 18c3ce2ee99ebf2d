"""Physics worlds: `base` is the contract, `factory` creates the engine that a config selects."""
