"""The traffic of a run below MPI, read from the files of its ranks."""
