"""Object stores: a local folder and S3."""
