"""What the Spark side costs: merges into large tables, many small tables, and the whole way from the binlog."""
