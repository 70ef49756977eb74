"""The status of a source: cursors, lag, binlog retention, findings about its server."""
