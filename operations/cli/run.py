"""`python -m operations.cli.run`: the same as the command `muster`."""

from operations.cli import main

if __name__ == "__main__":
    main()
