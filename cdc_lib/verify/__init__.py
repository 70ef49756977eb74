"""Is a lake table equal to its source? Compared in ranges of keys, by checksums."""
