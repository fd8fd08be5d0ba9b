"""satrap from Python."""
