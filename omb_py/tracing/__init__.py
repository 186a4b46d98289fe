"""Recording of a program in its job, then profiles, timelines, efficiency and traffic."""
