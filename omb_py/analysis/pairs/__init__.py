"""Pairs of ranks: a matrix of every link, and which of them are slow."""
