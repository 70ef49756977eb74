"""Merges a plan into its lake tables."""
