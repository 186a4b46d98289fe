"""PERFORMANCE GUIDELINES that a good library satisfies, checked on results."""
