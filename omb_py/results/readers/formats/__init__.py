"""The vocabularies of other suites: headings, columns, and what must hold between them."""
