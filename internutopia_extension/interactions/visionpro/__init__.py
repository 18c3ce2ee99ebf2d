"""Steering with an Apple Vision Pro, which is not here."""
