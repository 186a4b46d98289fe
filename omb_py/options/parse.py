"""From words of a command line to `Options`: the one road, for commands, sweeps and programs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.buffers import PAGE
from omb_py.core.dataclass import replace
from omb_py.core.errors import UsageError
from omb_py.core.memory import Place
from omb_py.core.options import ACTIVE, DEFAULT_PERCENTILES, GROWTH, PIPELINED, Options
from omb_py.options.table import parameters
from omb_py.results.destinations import check_output

ATTACHED_VALUES = {
    "--validation": re.compile("log(:.*)?"),
    "--tail-lat": re.compile(r"[\d.]+(,[\d.]+)*"),
}
"""Options whose value may only be attached, as for native OMB's getopt: ``-z50,90``; and what it
looks like."""

INTERLEAVED = "mod:2"
"""Default of ``--congestor``'s division of the ranks, so that both halves share hosts."""


# fmt: off
def contradiction(o: Options) -> str | None:
    """Return the sentence that refuses the first combination of options that cannot be."""
    congested = o.congestor is not None
    until_precise, limited = o.precision is not None, (o.precision, o.max_time) != (None, None)
    sentences = (
        (o.sizes is not None and (o.smallest, o.largest) != (None, None),
         "--sizes and -m exclude each other: leave out one"),
        (o.validate and not o.layout.contiguous,
         "-c and -D exclude each other, as in native OMB: leave out one"),
        (until_precise and o.iterations is not None,
         "--precision and -i exclude each other: limit it by --max-iterations"),
        (o.max_iterations is not None and not until_precise,
         "--max-iterations limits --precision: name one, or use -i"),
        (o.validate and limited,
         "-c and --precision or --max-time exclude each other: leave out one"),
        (o.target_busy is not None and o.window_sync in ACTIVE,
         "--target-busy is for targets that need not call MPI: choose -s flush, flush_local, "
         "lock or lock_all"),
        (o.file == "", "--file is empty: name a file that does not exist"),
        (o.offset >= PAGE, f"--offset is a place within a page: choose less than {PAGE}"),
        (o.skew is not None and not o.layout.contiguous,
         "-D lays out blocks of one length: leave out --skew and --matrix"),
        (o.skew is not None and o.own_algorithm is not None,
         "--p2p-algorithm sends equal blocks: leave out --skew and --matrix"),
        (o.segment is not None and o.own_segment is None,
         f"--segment is for --p2p-algorithm {PIPELINED}: choose that, or leave it out"),
        (o.segment == 0, "--segment 0 sends nothing: choose 1 byte or more"),
        (o.split is not None and o.samples is not None,
         "--samples does not tell groups apart: leave out --split, or name a file by --output"),
        (o.rounds is not None and not congested,
         "--rounds counts the turns of --congestor: name one"),
        (congested and o.validate,
         "--congestor needs times that nothing else is in: leave out -c"),
        (congested and (limited or o.auto_warmup),
         "--congestor takes turns of equal length: choose -i and -x instead of --precision, "
         "--max-time and -x auto"),
        (len(o.placement) not in (0, 2), "name both ends' memory, as in 'D D', or neither's"),
        (bool(o.placement) and o.managed,
         "--managed and 'D D' exclude each other: managed memory is MD or MH"),
    )
    return next((sentence for excluded, sentence in sentences if excluded), None)
# fmt: on


class OptionsCommand(click.Command):
    """A command whose short options are read as long ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, long_words(args, self.params))


def parse(benchmark: Benchmark, words: Iterable[str]) -> Options:
    """Return the options that words after a benchmark's name stand for.

    Raises `UsageError` for unknown options, and options that exclude each other.
    """
    return make_options(read_words(reader(benchmark), words))


@cache
def reader(benchmark: Benchmark) -> OptionsCommand:
    """Return the parser of a benchmark's words; made once, since a sweep uses it for each point."""
    return OptionsCommand(benchmark.name, params=parameters(benchmark), add_help_option=False)


def read_words(command: click.Command, words: Iterable[str]) -> dict[str, Any]:
    """Return the values of all parameters by name; raise `UsageError` for words click refuses."""
    try:
        return dict(command.make_context(command.name, list(words)).params)
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error


def make_options(values: Mapping[str, Any]) -> Options:
    """Return the options of a benchmark that click's ``values`` stand for.

    Raises `UsageError` if two of them exclude each other.
    """
    values = dict(values)
    smallest, largest, growth = values.pop("message_size", None) or (None, None, GROWTH)
    log = values.pop("validation", None)
    warmup = values.pop("warmup", None)
    if (matrix := values.pop("matrix", None)) is not None:
        if values.get("skew") is not None:
            raise UsageError("--matrix and --skew both say how blocks differ: choose one")
        values["skew"] = matrix
        if values.get("sizes") is None and (smallest, largest) == (None, None):
            values["sizes"] = (matrix.mean,)
    options = Options(
        smallest=smallest,
        largest=largest,
        growth=growth,
        validate=log is not None,
        validation_log=log or None,
        auto_warmup=warmup == "auto",
        warmup=None if warmup == "auto" else warmup,
        placement=tuple(Place(letters) for letters in values.pop("placement", ())),
        buffer_per_message=values.pop("buffer_num", "single") == "multiple",
        **values,
    )
    if options.congestor is not None and options.split is None:
        options = replace(options, split=INTERLEAVED)
    if sentence := contradiction(options):
        raise UsageError(sentence)
    if options.algorithm is not None:
        from omb_py.benchmarks.algorithms import check

        check(options)
    check_output(options.output, options.force, options.samples, options.graph)
    return options


def long_names(parameters: Iterable[click.Parameter]) -> set[str]:
    """Return the long names of options without dashes, and the names of arguments."""
    return {
        name.removeprefix("--")
        for one in parameters
        for name in (*one.opts, *one.secondary_opts)
        if name.startswith("--") or not isinstance(one, click.Option)
    }


def words_of(benchmark: Benchmark, given: Mapping[str, Any]) -> list[str]:
    """Return options by name, with underscores for hyphens, as words of a command line.

    Raises `UsageError` for an unknown name.
    """
    options = [found for found in reader(benchmark).params if isinstance(found, click.Option)]
    names = [name for option in options for name in option.opts]
    known = {name.lstrip("-").replace("-", "_"): name for name in names}
    off = {option.name: name for option in options for name in option.secondary_opts}
    flags = {name for option in options if option.is_flag for name in option.opts}
    words = []
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            raise UsageError(f"{benchmark.name} has no option {name!r}: {_suggestion(name, known)}")
        if value is False and name in off:
            words.append(off[name])
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif option in flags:
            raise UsageError(f"{name} is True or False, not {value!r}")
        else:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words.append(f"{option}={text}" if option.startswith("--") else f"{option}{text}")
    return words


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return the names that were probably meant, or all names."""
    from omb_py.core.text.words import nearest

    near = nearest(name, [one for one in known if len(one) > 1], most=2)
    return f"did you mean {' or '.join(near)}?" if near else ", ".join(sorted(known))


def long_words(words: list[str], parameters: Iterable[click.Parameter]) -> list[str]:
    """Return words of a command line with the long names of its options."""
    valued: dict[str, str] = {}
    flags: dict[str, str] = {}
    for option in parameters:
        if isinstance(option, click.Option):
            long = max(option.opts, key=len)
            letters = (name[1] if len(name) == 2 else name for name in option.opts)
            (flags if option.is_flag else valued).update(dict.fromkeys(letters, long))
    return spell_out(words, valued, flags)


def named(parameters: Iterable[click.Parameter]) -> dict[str, bool]:
    """Return options by each of their names, and whether they take a value."""
    options = (one for one in parameters if isinstance(one, click.Option))
    return {
        name: not one.is_flag and one.nargs == 1
        for one in options
        for name in (*one.opts, *one.secondary_opts)
    }


def apart(words: Iterable[str], known: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Return the words of ``known`` options (`named`) with their values, and all others.

    A short option counts if it stands alone, since letters may be those of another option's value.
    """
    theirs: list[str] = []
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        name, attached, _ = word.partition("=")
        name = name if word.startswith("--") else word
        if name not in known:
            others.append(word)
            continue
        theirs.append(word)
        if known[name] and not attached:
            theirs += [value for value in [next(rest, None)] if value is not None]
    return theirs, others


def spell_out(
    arguments: list[str], valued: Mapping[str, str], flags: Mapping[str, str]
) -> list[str]:
    """Rewrite short options as long ones, also ``-c`` and ``-z`` with their attached values.

    ``valued`` and ``flags`` have the long names by letter and by long name, of options that consume
    what follows them and of others. A value may begin with a dash. Everything else, and all after
    ``--``, stays as it is: click reads short options, too, but looks for a long one of that name
    first, and loads `difflib` for it. Raises `UsageError` if the value of ``-c`` or ``-z`` stands
    apart.
    """
    attached = ATTACHED_VALUES.keys() & valued.values()
    spelled: list[str] = []
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        if argument == "--":
            return [*spelled, argument, *rest]
        if argument in attached:
            argument += f"={default_value(argument, f'{argument}=', rest)}"
        if argument.startswith("--") or not argument.startswith("-") or argument == "-":
            spelled.append(argument)
            if argument in valued and rest:
                spelled.append(rest.popleft())
            continue
        letters = argument[1:]
        while letters[:1] in flags:
            spelled.append(flags[letters[0]])
            letters = letters[1:]
        name, value = valued.get(letters[:1], ""), letters[1:]
        if name in attached:
            spelled.append(f"{name}={value or default_value(name, argument, rest)}")
        elif name and (value or rest):
            spelled.append(f"{name}={value or rest.popleft()}")
        elif letters:
            spelled.append(f"-{letters}")
    return spelled


def default_value(name: str, written: str, following: Sequence[str]) -> str:
    """Return the value of an option whose optional value is missing.

    Raises `UsageError` if the word after it, as ``written``, looks like its value.
    """
    if following and ATTACHED_VALUES[name].fullmatch(following[0]):
        option, joined = written.rstrip("="), f"{written}{following[0]}"
        raise UsageError(f"{option} takes its value without a blank between: {joined}")
    if name == "--tail-lat":
        return ",".join(f"{percent:g}" for percent in DEFAULT_PERCENTILES)
    return ""
