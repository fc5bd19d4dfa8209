"""What the tests of many machines share: what those of the index and of the service have."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / name) for name in ("index", "serve")]
