"""Files and commands where agents work: the only package that touches them."""
