"""CuPy's error."""


class OutOfMemoryError(MemoryError):
    pass
