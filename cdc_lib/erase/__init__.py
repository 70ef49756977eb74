"""Every place that keeps the values of a row: in the store, in the lake's files and in their metadata."""
