"""``cdc spark``: the Spark server."""
