"""``cdc doctor --spark``: whether Spark's executors can do what a merge needs, and what is missing."""
