"""Parts of applications: grids, transposes, samples, the methods of k-means and neighbours."""
