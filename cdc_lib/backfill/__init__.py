"""A stretch of the binlog once more: from the archived batches, or from the server."""
