"""Programs of many ranks, run on SimGrid instead of MPI: what a larger machine would do.

`program` says what a rank does, `network` what messages cost and how nodes are connected, `engine`
runs one on the other. Nothing here is loaded unless somebody simulates.
"""
