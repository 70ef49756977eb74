"""A read-only Iceberg REST catalog over the cuts of sources: every engine reads the lake as of one transaction."""
