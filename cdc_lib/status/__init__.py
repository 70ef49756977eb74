"""Where a source is: its cursors, its lag, its binlog retention, what was found on its server."""
