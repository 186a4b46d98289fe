"""What applications run on: the team of ranks, their phases, and how they are measured."""
