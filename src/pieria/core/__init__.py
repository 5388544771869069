"""All behaviour as values and functions: no I/O, no clock, no randomness."""
