"""Re-selection: rows are read from the source again by primary key, because their changes are not sufficient."""
