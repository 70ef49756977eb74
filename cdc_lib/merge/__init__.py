"""What a merge takes, and what it makes of it: decided without Spark."""
