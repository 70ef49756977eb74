"""Packets to events and transactions, before any row is decoded."""
