"""The gate V(p): plan of checks, tolerance, verdicts. ``runner`` and ``interpreter`` call workers; the rest is pure."""
