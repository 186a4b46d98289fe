"""Running a plan, timing it, checking its data, and making a row of it."""
