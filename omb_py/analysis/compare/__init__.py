"""WHAT IS DIFFERENT: results side by side, and whether the difference is more than noise."""
