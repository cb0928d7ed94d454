"""``python -m tsrnn.cli`` is ``tsrnn``."""

from tsrnn.cli import main

if __name__ == "__main__":
    main()
