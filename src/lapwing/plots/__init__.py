"""Pictures: axes in, axes out; drawn from results alone."""
