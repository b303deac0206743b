"""What bounds a kernel: hardware counters where they may be read, arithmetic where they may not, and one diagnosis."""
