"""Training of policies with the PPO of rsl_rl, and its outcome: `internutopia train`, `play`, `evaluate`."""
