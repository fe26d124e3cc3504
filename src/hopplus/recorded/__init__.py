"""Recorded play, and models fitted to it."""
