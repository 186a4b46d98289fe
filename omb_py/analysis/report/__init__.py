"""ALL OF IT ON ONE PAGE: what ran where, plots, tables, a comparison, and what is odd."""
