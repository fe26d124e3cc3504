"""Commands that train several runs and put them in one table."""
