"""What tasks read and wrote, for data catalogs: one file for each kind of task, and the mapping to OpenLineage's classes."""
