"""Seeing what a program does with MPI while it runs, without changing it.

Calls are intercepted in C (`interception`) and kept in a record (`omb_py.tracing.records.layout`),
one file for each rank, which others read.
"""
