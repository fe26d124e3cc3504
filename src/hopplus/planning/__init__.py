"""Thinking ahead."""
