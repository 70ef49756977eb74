"""Airflow's part: one DAG per source file, whose tasks call the library. Cursors and batches live in the store, not here."""
