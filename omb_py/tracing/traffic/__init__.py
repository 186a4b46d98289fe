"""What a run moved below MPI, read from the files of its ranks."""
