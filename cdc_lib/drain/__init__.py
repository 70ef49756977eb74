"""Reads one binlog window into one durable batch."""
