"""One module for each part of the machine that `kbtui doctor` looks at."""
