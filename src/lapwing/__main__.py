"""``python -m lapwing``: the command line, where the folder of scripts is not on the path."""

from lapwing.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
