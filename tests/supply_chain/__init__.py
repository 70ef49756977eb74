"""Programs about what the project is made of: ``./dev sbom`` and ``./dev audit``."""
