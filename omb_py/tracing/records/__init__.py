"""Records of a run: calls of every rank, when, for how long, with how many bytes.

`layout` defines a record, `reading` reads one, `run` opens a whole run.
"""
