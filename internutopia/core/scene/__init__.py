"""Scenes: what they are made of, how assets become models, and what extension classes see of them."""
