"""A shop to follow: its tables, its seed rows, its customers' doings, and the judge that compares source and lake."""
