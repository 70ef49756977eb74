"""Batch change data capture from MySQL and MariaDB: everything that needs neither Airflow nor Spark."""
