"""Statistics of timed samples: schedule, robust location, adjudication. Pure; the loop takes its sides as arguments."""
