"""Arrays kept on disk and mapped into memory: what is worked out once and read in every run."""
