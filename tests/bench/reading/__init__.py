"""Readers that ``./dev bench read`` compares, and the lake that they read."""
