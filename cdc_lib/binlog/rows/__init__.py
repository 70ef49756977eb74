"""From the events of rows to columns: which table, which columns, which values are there."""
