"""Where to start, which windows of the binlog to read next, and how a cursor moves over durable windows."""
