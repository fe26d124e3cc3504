"""Episodes watched, recorded, and shown again."""
