"""Profiles: what every rank called, how often, with how many bytes, for how long.

A profile comes from the records of a run, from files that mpitrace wrote, or from a CSV or JSON
that was made of it before (`store`). `text` writes it as users of mpitrace know it, `csv` and
`json` write all of it. What no source reports is None, and a note says so.
"""
