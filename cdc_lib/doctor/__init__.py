"""The checks of `cdc doctor`: one module for each requirement of a run. They change nothing."""
