"""Experience: collect, audit, store and load it."""
