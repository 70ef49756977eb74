"""The cdc command."""
