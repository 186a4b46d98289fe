"""GENERAL COSTS: parameters fitted to results, and predictions with their bands."""
