"""The panes of a run's screen, one widget a file: each shows a moment as a look asks for it."""
