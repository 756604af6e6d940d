"""One file per table, figure or theorem of the paper, and for each study of our own; :mod:`catalogue` lists them."""
