"""`python -m agentkit` is the command `agentkit`."""

import sys

from agentkit.cli import main

sys.exit(main())
