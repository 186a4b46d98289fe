"""HOW FAR IT GOES: applications over numbers of ranks, and what laws of scaling make of them.

Needs no MPI. `rows` reads the tables that applications write, `series` puts them together,
`prediction` says what they would be on other numbers of ranks, `text` and `figure` show it.
"""

PUBLISHED_RANKS = 224
"""Cores of the maximum speed-up in OMB-Py's paper."""
