"""Scores against a truth, and the yardstick that any estimate from data is measured with."""
