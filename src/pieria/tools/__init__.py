"""Tools, one file each. They say what a call would do and word what came of it; changing the world is left to ports."""
