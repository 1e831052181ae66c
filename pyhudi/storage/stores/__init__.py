"""Object stores: S3, Google Cloud Storage and Azure, by the clients of pyarrow and obstore."""
