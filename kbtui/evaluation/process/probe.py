"""Effects: confines itself to the directory in ``argv[1]`` and prints what held.

One protection a line: name, 1 or 0, detail, tabs between.
"""

import sys
from pathlib import Path

from kbtui.evaluation.process import sandbox


def main() -> None:
    for protection in sandbox.apply(sandbox.cpu_policy(), Path(sys.argv[1])):
        print(protection.name, int(protection.enforced), protection.detail, sep="\t")
