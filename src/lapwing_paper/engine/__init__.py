"""Studies: many runs carried out in parallel, kept as files, and read back as tables and pictures."""
