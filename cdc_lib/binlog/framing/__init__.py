"""From packets to events and transactions; which of them count is decided here, before any row is read."""
