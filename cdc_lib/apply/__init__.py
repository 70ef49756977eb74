"""Applies changes to the rows of a lake table in Arrow: no Spark SQL, no JVM, no PyIceberg."""
