"""Programs of many ranks, run on SimGrid instead of MPI, to predict a larger machine.

`program` has the operations of a rank, `network` the costs of messages and the connections of
nodes, `engine` runs one on the other. Nothing here is loaded except for a simulation.
"""
