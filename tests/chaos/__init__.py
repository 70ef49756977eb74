"""Kills the steps of a source at labelled points, in a random order that follows from a seed, and compares every row."""
