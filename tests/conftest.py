"""What tests share: games, and the compiled functions that cost the most to make."""
