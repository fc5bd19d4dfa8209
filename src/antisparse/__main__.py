"""`python -m antisparse` is the command `antisparse`."""

import sys

from antisparse.cli import main

sys.exit(main())
