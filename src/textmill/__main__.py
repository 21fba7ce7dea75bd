"""``python -m textmill`` is ``textmill``."""

import sys

from textmill.cli.main import main

sys.exit(main())
