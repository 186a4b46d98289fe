"""WHAT IS DIFFERENT: results next to each other, and whether differences exceed noise."""
