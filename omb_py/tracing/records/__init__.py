"""Records of a run: what every rank called, when, for how long, with how many bytes.

`layout` says what a record is, `reading` reads one, `run` opens a whole run.
"""
