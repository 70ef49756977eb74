"""The Spark session: its jars, JVM and start-up; parallel tables, and output of jobs."""
