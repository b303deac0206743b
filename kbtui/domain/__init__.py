"""Values shared by every part of kbtui. Standard library only, no I/O."""
