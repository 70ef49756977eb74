"""The example shop: tables, seed rows, workload, and the comparison of source and lake."""
