"""Profiles: what every rank called, how often, with how many bytes, for how long.

A profile comes from the records of a run (`recorded`) or from files that mpitrace wrote
(`mpitrace`). `store` reads it and writes its files, whose tables `tables` and `text` make. What no
source reports is None, and a note says so.
"""
