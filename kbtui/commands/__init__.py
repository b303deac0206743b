"""What each command does, once its words are understood. Heavy imports stay inside the functions."""
