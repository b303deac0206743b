"""``python -m kbtui``."""

from kbtui.cli import main

main()
