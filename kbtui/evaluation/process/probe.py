"""Effects: confines itself to the directory in ``argv[1]`` and prints what held.

One protection a line: name, 1 or 0, detail, tabs between.
"""

import sys
from dataclasses import replace
from pathlib import Path

from kbtui.evaluation.process import sandbox


def main() -> None:
    policy = replace(sandbox.cpu_policy(), unix_sockets=True)
    for protection in (*sandbox.apply(policy, Path(sys.argv[1])), *sandbox.lock(policy)):
        print(protection.name, int(protection.enforced), protection.detail, sep="\t")
