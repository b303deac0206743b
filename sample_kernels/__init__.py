"""Sample problems, one folder each: problem.toml, reference.py and kernel.py. Importing this loads no torch."""
