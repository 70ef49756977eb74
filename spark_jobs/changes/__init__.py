"""The batches of a plan as frames of changes."""
