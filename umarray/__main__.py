"""``python -m umarray``."""

import sys

from umarray.cli import main

if __name__ == "__main__":
    sys.exit(main())
