"""Checkpoints: what storing the state of all ranks costs by several methods, and restarting.

Methods take turns in each round. Every rank stores its own bytes, new ones in each round, and reads
those of another rank, whose every byte is checked.
"""
