"""The crash campaign: sessions that die at every byte and step, and must come back as if nothing had happened."""
