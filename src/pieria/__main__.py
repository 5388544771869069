"""`python -m pieria`."""

import sys

from pieria.cli import main

if __name__ == "__main__":
    sys.exit(main())
