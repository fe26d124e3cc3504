"""`python -m hopplus` is the command line."""

import sys

from hopplus.cli import main

sys.exit(main())
