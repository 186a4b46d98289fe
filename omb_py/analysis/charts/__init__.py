"""Charts of results as Vega-Lite specifications, which become images and parts of pages."""
