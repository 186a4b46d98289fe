"""What everything stands on: errors, options, text, element types, the MPI job, calls."""
