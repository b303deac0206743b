"""Makes the recorded run and the fake source beside this file importable by the tests of the viewer."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
