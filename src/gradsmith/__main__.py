"""`python -m gradsmith`."""

from gradsmith.cli import main

main()
