"""The Spark session: its jars, its JVM, its start-up; tables side by side, and what a job prints."""
