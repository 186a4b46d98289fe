"""A run watched while it runs, by reading the records that its ranks write.

`snapshots` has the state of records at a time, and changes between two times; `findings` has
waiting ranks and reports; `observations` repeats all of this and shows it. Ranks are not
interrupted.
"""
