"""``python -m omb_py`` is the ``omb-py`` command."""

from omb_py.cli import main

main()
