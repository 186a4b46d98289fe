"""The lost time of parallel runs, in POP's multiplicative factors: `runs` has them, `table` shows
them.
"""
