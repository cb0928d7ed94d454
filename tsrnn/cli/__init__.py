"""The command line: ``tsrnn forecast``, ``tsrnn compare``, ``tsrnn features`` and others.

Commands import pandas, torch and the rooms of the package when they run, so that help is quick.
"""

from tsrnn.cli._app import app, main

__all__ = ["app", "main"]
