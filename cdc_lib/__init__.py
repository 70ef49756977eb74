"""Change data capture from MySQL and MariaDB in batches, and everything about it that needs neither Airflow nor Spark."""
