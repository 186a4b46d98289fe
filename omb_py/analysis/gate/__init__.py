"""Which host of a machine is slow: limits from its own hosts, and a verdict for each of them."""
