"""Seeing what a program does with MPI while it runs, without changing it.

Calls are seen from Python (`substitution`) or from C (`interception`), and kept in a record
(`omb_py.tracing.records.layout`), one file for each rank, which others read.
"""
