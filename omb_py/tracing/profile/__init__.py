"""Profiles: calls of every rank, how often, with how many bytes, for how long.

A profile comes from the records of a run (`recorded`) or from files that mpitrace wrote
(`mpitrace`). `store` reads it and writes its files, whose tables `tables` and `text` make. Values
that no source reports are None, with a note.
"""
