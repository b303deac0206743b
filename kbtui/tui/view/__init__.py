"""View models: pure functions from a run's recorded state to the lines a pane shows."""
