"""Earlier versions of the rows of mirror and soft_delete tables, read from the batches that retention has not removed yet."""
