"""The options of all commands as rows of tables, and one road from words to their values."""
