"""The decisions, as pure functions of recorded state."""
