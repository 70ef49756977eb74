"""One plan into the lake tables that it touches."""
