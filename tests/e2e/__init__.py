"""The real program from outside: its own process, real git, real files, a model behind a real socket."""
