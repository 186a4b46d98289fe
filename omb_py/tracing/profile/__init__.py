"""Profiles: calls of every rank, how often, with how many bytes, for how long.

`store` reads a profile from the records of a run, or from files that mpitrace wrote (`mpitrace`),
and writes its files, whose tables `tables` and `text` make. Values that no source reports are None,
with a note.
"""
