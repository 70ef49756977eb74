"""Iceberg tables: DDL, commits, markers, branches, maintenance."""
