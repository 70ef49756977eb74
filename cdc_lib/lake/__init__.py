"""Lake tables: their names, modes, columns and files, decided without Spark; and reading them."""
