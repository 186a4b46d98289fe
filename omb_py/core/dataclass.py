"""Frozen data classes that are defined without generating code, for modules that ranks import.

`dataclasses` compiles up to six functions for each class, which took a third of omb-py's part of a
start (``make start-up``); here all classes share theirs. Type checkers see `dataclasses` itself,
and its ``fields``, ``replace`` and ``asdict`` take these classes, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Any

    def values(record: Any) -> dict[str, Any]:
        """Return the fields of a data class by name, in their order."""
else:

    def dataclass(*, frozen, eq=True):
        """Make a class a frozen data class; without ``eq``, objects are equal to themselves."""
        assert frozen, "use dataclasses.dataclass"

        def define(cls):
            defaults = {}
            for base in cls.__mro__[:0:-1]:
                defaults |= vars(base).get("_defaults", {})
            for name in cls.__annotations__:
                defaults[name] = vars(cls).get(name, _REQUIRED)
                if isinstance(defaults[name], _Factory):
                    delattr(cls, name)
            cls._defaults = defaults
            cls._hashed = tuple(name for name in defaults if _is_hashed(defaults[name]))
            cls.__dataclass_fields__ = _Generated("__dataclass_fields__")
            cls.__dataclass_params__ = _Generated("__dataclass_params__")
            cls.__init__, cls.__repr__ = _initialize, _represent
            cls.__setattr__ = cls.__delattr__ = _refuse
            if eq:
                cls.__eq__, cls.__hash__ = _equal, _hash
            return cls

        return define

    def field(*, default_factory, hash=True):
        """Return a field with a default made anew for each object; ``hash`` puts it into hashes."""
        return _Factory(default_factory, hash)

    def replace(record, /, **changes):
        """Return a copy of ``record`` in which some fields differ."""
        return type(record)(**values(record) | changes)

    def values(record):
        """Return the fields of a data class by name, in their order."""
        return {name: getattr(record, name) for name in record._defaults}

    _REQUIRED = object()

    class _Factory:
        def __init__(self, make, hashed):
            self.make = make
            self.hashed = hashed

    class _Generated:
        """Metadata that `dataclasses` makes of a class, when one of its functions is first used."""

        def __init__(self, name):
            self.name = name

        def __get__(self, record, cls):
            import dataclasses

            fields = []
            for name, default in cls._defaults.items():
                if default is _REQUIRED:
                    made = dataclasses.field()
                elif isinstance(default, _Factory):
                    made = dataclasses.field(default_factory=default.make, hash=default.hashed)
                else:
                    made = dataclasses.field(default=default)
                annotations = (getattr(base, "__annotations__", {}) for base in cls.__mro__)
                kind = next(types[name] for types in annotations if name in types)
                fields.append((name, kind, made))
            made = dataclasses.make_dataclass(cls.__name__, fields, frozen=True)
            cls.__dataclass_fields__ = made.__dataclass_fields__
            cls.__dataclass_params__ = made.__dataclass_params__
            return getattr(made, self.name)

    def _initialize(self, /, *values, **named):
        state, defaults = self.__dict__, self._defaults
        state.update(zip(defaults, values, strict=False))
        if len(values) > len(defaults):
            raise TypeError(f"{type(self).__name__}() takes fewer values")
        for name in named:
            if name in state or name not in defaults:
                raise TypeError(f"{type(self).__name__}() cannot take {name!r}")
        state.update(named)
        if len(state) < len(defaults):
            for name, default in defaults.items():
                if name in state:
                    continue
                if default is _REQUIRED:
                    raise TypeError(f"{type(self).__name__}() needs {name!r}")
                state[name] = default.make() if type(default) is _Factory else default
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def _represent(self):
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._defaults)
        return f"{type(self).__qualname__}({fields})"

    def _refuse(self, name, value=None):
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: it is frozen")

    def _equal(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._defaults)

    def _hash(self):
        return hash(tuple(getattr(self, name) for name in self._hashed))

    def _is_hashed(default):
        return default.hashed if type(default) is _Factory else True
