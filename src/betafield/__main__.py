"""`python -m betafield` is the command `betafield`."""

import sys

from betafield.cli import main

sys.exit(main())
