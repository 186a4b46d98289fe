"""From a configuration to many runs: points, launchers, resuming, and jobs of schedulers."""
