"""What `cdc doctor` looks at beside the server: one module per thing that a run needs. Nothing is changed by looking."""
