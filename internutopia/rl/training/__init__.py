"""Training of policies with the PPO of rsl_rl, and what comes out of it: `internutopia train`, `play`, `evaluate`."""
