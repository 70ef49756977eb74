"""Object stores: a folder, S3, and what is common to them."""
