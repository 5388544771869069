"""Settings from flags, environment and files; trust; the place; known secrets. Nothing here is ever guessed."""
