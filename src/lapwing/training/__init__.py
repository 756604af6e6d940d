"""Learning: one step, one scanned loop, many seeds, and the representation that comes out."""
