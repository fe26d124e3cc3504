"""How the command line is read: its help, and what is said about what it cannot read."""
