"""Counters of links below MPI, read when a program begins and when it ends (`collector`)."""
