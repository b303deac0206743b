"""kbtui: a terminal cockpit that makes a Triton kernel faster and shows why to believe it."""

__version__ = "0.1.0"
