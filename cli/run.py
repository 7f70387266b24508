"""`python -m cli.run`: the same as the command `muster`."""

from cli.main import main

if __name__ == "__main__":
    main()
