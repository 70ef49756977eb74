"""Which windows of the binlog to read next, from which position on, and how a cursor moves when they are durable."""
