"""`python -m kschedfw` is the `kschedfw` command."""

from kschedfw.cli import main

main()
