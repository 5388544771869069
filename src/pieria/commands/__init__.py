"""One file a verb of the command line: arguments in, exit code out."""
