"""Frozen functions: `freeze` records what a function launches and replays it with other arrays."""
