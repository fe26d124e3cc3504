"""Episodes watched, played by a person, and shown again."""
