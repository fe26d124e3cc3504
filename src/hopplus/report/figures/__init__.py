"""Figures drawn with matplotlib, all with one palette."""
