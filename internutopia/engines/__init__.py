"""Physics worlds: `base` is the contract, `factory` picks the engine that a config asks for."""
