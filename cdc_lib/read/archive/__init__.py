"""Earlier versions of a mirror's rows, read from the batches that retention has not removed yet."""
