"""Object storage: where batches, cursors and cuts lie, in a local folder or after the S3 protocol."""
