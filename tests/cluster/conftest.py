"""What the tests of many machines share: those of the index."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "index"))
