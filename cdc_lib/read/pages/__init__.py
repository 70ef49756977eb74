"""Single pages of Parquet files, for reads of few rows of a row group."""
