"""Object storage of batches, cursors and cuts: a local folder or S3."""
