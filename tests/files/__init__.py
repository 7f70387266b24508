"""Complete files in the folder and in a bucket of a real S3-compatible server."""
