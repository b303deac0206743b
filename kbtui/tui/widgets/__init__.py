"""One widget a file; none of them does I/O."""
