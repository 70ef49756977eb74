"""Speaks to a MySQL or MariaDB server: connections, what it says of itself, the stream of its binlog."""
