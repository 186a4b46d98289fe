"""A run watched while it runs, by reading what its ranks record.

`looks` makes of records what is seen at a time, and of two looks what has changed; `waiting` finds
who waits for whom, `findings` what there is to say, `view` and `lines` show it, and `following`
goes on looking. Nothing is asked of the ranks.
"""
