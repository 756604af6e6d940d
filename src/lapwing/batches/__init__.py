"""What a training step eats: sampled pairs, or the exact expectation over a finite data set."""
