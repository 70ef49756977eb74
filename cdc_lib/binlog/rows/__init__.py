"""Row events to columns: which table, which columns, which values."""
