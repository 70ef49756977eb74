"""``cdc verify``: tables, their key ranges, and drained windows compared with the source."""
