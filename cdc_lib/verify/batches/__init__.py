"""Drained windows decoded a second time by mysql-replication, and compared with their batches."""
