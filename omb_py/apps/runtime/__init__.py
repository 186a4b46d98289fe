"""The base of applications: the team of ranks, their phases, and their measurement."""
