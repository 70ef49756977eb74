"""The Spark server: one Java process that runs the jobs of many sources, each job in a Python process of its own."""
