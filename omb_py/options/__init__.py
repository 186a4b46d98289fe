"""The options of all commands as data, and the one way from words to `omb_py.core.options.Options`."""
