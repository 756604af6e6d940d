"""Worlds: grids from rules or text layouts, a continuous box, and their Gymnasium environments."""
