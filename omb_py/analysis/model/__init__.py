"""WHAT IT COSTS IN GENERAL: parameters fitted to results, and predictions with their bands."""
