"""EFFICIENCY: the lost time of a parallel run, in POP's multiplicative factors.

`intervals` and `dependency_graph` turn a run's records into work that `replay`
runs on an ideal network; `runs` puts a run together and has the factors, `series` compares
runs, `table` shows them.
"""
