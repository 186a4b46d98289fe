"""What a program did: recorded in the job, then profiles, timelines, efficiency, traffic."""
