"""The version of the package; that of the program `onward`."""

VERSION = "0.1.0"
