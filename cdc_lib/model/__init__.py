"""Values that all rooms share: what is persisted, and what is decided on. Pure."""
