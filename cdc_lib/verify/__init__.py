"""Verification: compares source and lake tables by checksums of key ranges."""
