"""What the package raises."""


class Error(RuntimeError):
    """A job that cannot be trained, or a call that cannot be right; the message is that of the command `satrap`."""


class ConfigError(Error, ValueError):
    """The job is wrong: the message names the key, its place, the rule and the value."""


class DataError(Error, ValueError):
    """The rows of the data cannot be used."""


class DivergedError(Error):
    """Too many steps were not finite, or the result is not the one that train.expect says."""
