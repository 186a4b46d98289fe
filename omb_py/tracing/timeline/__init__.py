"""Timelines: `assembly` makes them of the records of a run, `json_trace` writes them."""
