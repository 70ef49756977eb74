"""Iceberg tables: definition, commits, markers, branches, maintenance."""
