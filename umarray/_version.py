"""The version, in a file of its own so that a build can read it without importing anything."""

__version__ = "0.1.0"
