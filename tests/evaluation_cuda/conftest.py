import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "evaluation_gate"):
    sys.path.insert(0, str(folder))
