"""`python -m luxgrad` is the command `luxgrad`."""

from __future__ import annotations

import sys

from luxgrad.cli import main

sys.exit(main())
