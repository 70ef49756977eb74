"""Values that all folders share: persisted documents, and the inputs and results of decisions. Pure."""
