"""Parts of several applications: grids, transposes and samples."""
