"""The command line: one file per command, and what is printed to a terminal."""
