"""One window of the binlog to one durable batch."""
