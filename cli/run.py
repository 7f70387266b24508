"""`python -m cli.run`: runs the command `muster`."""

from cli.main import main

if __name__ == "__main__":
    main()
