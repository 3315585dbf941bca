"""The version of the package; that of the program `onward`."""

__version__ = "0.1.0"
