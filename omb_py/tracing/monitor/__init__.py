"""A run watched while it runs, by reading what its ranks record.

`snapshots` has what records show at a time, and what has changed between two times; `findings` who
waits for whom and what to report; `view` and `lines` show it, and `following` repeats all of this.
Ranks are not interrupted.
"""
