"""WHAT A SANE LIBRARY SATISFIES: performance guidelines, checked on results."""
