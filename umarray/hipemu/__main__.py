"""Entry point of ``python -m umarray.hipemu``."""

from .command import main

main()
