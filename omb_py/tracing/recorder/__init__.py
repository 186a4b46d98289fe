"""Interception of a program's MPI calls while it runs, without changing it.

Calls are intercepted in C (`interception`) and kept in a record (`omb_py.tracing.records.layout`),
one file for each rank, which other packages read.
"""
