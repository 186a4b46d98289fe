"""ALL RESULTS ON ONE PAGE: runs and machines, plots, tables, a comparison, and anomalies."""
