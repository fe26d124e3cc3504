"""What is wrong with what somebody asked for."""


class ConfigError(Exception):
    """A setting, a name or a layout that cannot be used; the message is one sentence for people."""


class RunError(Exception):
    """A run that cannot go on; the message is one sentence for people."""
