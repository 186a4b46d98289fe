"""Rows, and the formats they are written in."""
