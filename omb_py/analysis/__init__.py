"""WHAT RESULTS SAY: one table of all results read, their numbers, units and a choice of rows.

Comparison, plots, reports and models build on it. None of them needs MPI, and none is loaded under
a launcher before the measurement ends.
"""
