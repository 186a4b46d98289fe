"""EFFICIENCY: what the time of a parallel run was lost to, in POP's multiplicative factors.

`intervals`, `event_matching` and `dependency_graph` turn a run's records into work that `replay`
runs on an ideal network; `metrics` has the factors; `inputs` and `runs` put a run together,
`series` sets runs beside each other, `text`, `rows` and `figure` show them.
"""
