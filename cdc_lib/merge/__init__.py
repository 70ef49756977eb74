"""Planning of a merge: which batches each table needs, and how they apply; decided without Spark."""
