"""WHAT RESULTS SAY: one table of all that was read, its numbers, its units, a choice of its rows.

Neither this nor what builds on it (comparison, plots, reporting, modelling) needs MPI, and none of
it is loaded under a launcher before everything is measured.
"""
