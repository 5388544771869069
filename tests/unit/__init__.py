"""Each rule of the core as a fact, over values alone."""
