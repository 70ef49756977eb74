"""Object storage: where batches, cursors and cuts lie, in a local folder or behind the S3 protocol."""
