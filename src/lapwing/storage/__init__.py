"""Atomic files, schemas, run folders and locks: the only package that knows file formats."""
