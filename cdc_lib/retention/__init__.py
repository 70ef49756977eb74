"""Which batches, cuts and raw events may go, and their removal."""
