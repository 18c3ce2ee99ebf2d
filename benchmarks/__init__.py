"""Figures that this project promises, measured on the machine at hand: `python -m benchmarks`, from the checkout.

`README.md` explains how to read them. The scripts in this folder measure what takes its own program.
"""
