"""Tokens to experts and back, as layers of a mixture of experts exchange them.

Each token goes to ``top_k`` experts, which are divided over the ranks. Popular experts make some
ranks busier than others: DeepSeek-V3 (arXiv 2412.19437, sections 2.1.2 and 3.4) has 256 experts,
8 for each token of 7168 numbers, sent as FP8 and returned as BF16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import (
    Application,
    CheckedResult,
    Detail,
    Kernel,
    Sequential,
    option,
    share,
)
from omb_py.apps.runtime.distribution import exchange, exchange_option, random_numbers
from omb_py.apps.runtime.team import Team
from omb_py.core.calls.skew import Skew
from omb_py.core.errors import UsageError

BYTES = {"bfloat16": 2, "float8": 1, "float32": 4}
"""Bytes of an element; only its bytes move, so that arrays are of whole numbers."""

MARKS = 251
"""Elements are whole numbers below it, a prime, so that neighbours and rows differ."""


@dataclass(frozen=True)
class Routing:
    """Tokens, and the experts that they go to.

    An expert's popularity follows Zipf's law: the most popular one's is ``popularity`` times the
    mean.
    """

    tokens: int = option(8192, "Tokens of all ranks together.", minimum=1)
    hidden: int = option(1024, "Numbers of a token.", minimum=1)
    experts: int = option(64, "Experts, divided over the ranks.", minimum=1)
    top_k: int = option(8, "Experts of each token.", minimum=1)
    popularity: float = option(1.0, "Popularity of the most popular expert, in means.", minimum=1)
    dtype: str = option("bfloat16", "Element type, moved as bytes.", choices=tuple(BYTES))
    exchange: str = exchange_option()
    seed: int = option(1, "Of the routing table.", minimum=0)

    def __post_init__(self) -> None:
        if self.top_k > self.experts:
            raise UsageError(f"--top-k {self.top_k} needs as many experts: --experts {self.top_k}")
        if self.popularity > self.experts:
            raise UsageError(
                f"--popularity {self.popularity:g} is above the number of experts, {self.experts}"
            )


class Dispatch(Kernel[Routing]):
    """Pack the copies of this rank's tokens by rank, exchange them; exchange them back, unpack.

    The routing table is the same in all repeats, so that counts are known beforehand and buffers
    are bound once; experts return what they got.
    """

    def __init__(self, team: Team, problem: Routing) -> None:
        super().__init__(team, problem)
        if problem.experts < team.ranks:
            raise UsageError(
                f"--experts {problem.experts} is less than one for each of {team.ranks} ranks"
            )
        import numpy as np

        routes = [routed(problem, team.ranks, rank) for rank in range(team.ranks)]
        tokens, _ = routes[team.rank]
        sent = np.array([np.bincount(to, minlength=team.ranks) for _, to in routes])
        leaving, arriving = sent[team.rank], sent[:, team.rank]
        self._tokens = tokens
        self._guests = np.concatenate([own[to == team.rank] for own, to in routes])
        begin, end = share(problem.tokens, team.ranks, team.rank)
        self._own = team.filled(elements(problem, np.arange(begin, end)))
        self._rows = team.xp.asarray(tokens - begin)
        kind = self._own.datatype
        sizes = [(len(tokens), problem.hidden), (int(arriving.sum()), problem.hidden)]
        self._packed, self._visiting = (team.array(size, kind) for size in sizes)
        self._back = team.array(sizes[0], kind)
        self._busiest = int(sent.sum(axis=0).max())
        rows = (self._packed, leaving), (self._visiting, arriving), (self._back, leaving)
        there, guests, back = (
            array.message([problem.hidden * int(tokens) for tokens in counts], "v")
            for array, counts in rows
        )
        pairs = (there, guests), (guests, back)
        self._exchanges = [exchange(team, problem.exchange, *sides) for sides in pairs]

    def solve(self) -> None:
        team = self.team
        with team.computing:
            self._packed.data[...] = self._own.data[self._rows]
        for move in self._exchanges:
            move()

    def parts(self) -> list[Detail]:
        mean = self.problem.tokens * self.problem.top_k / self.team.ranks
        return [Detail("busiest rank", value=self._busiest / mean, unit="means")]

    def result(self) -> Any:
        """Return the wrong elements of each rank's experts, and of what came back."""
        import numpy as np

        wrong = [
            int((self.team.on_host(array.data) != elements(self.problem, tokens)).sum())
            for array, tokens in ((self._visiting, self._guests), (self._back, self._tokens))
        ]
        return self.team.comm.gather(np.array(wrong))


def routed(problem: Routing, ranks: int, rank: int) -> tuple[Any, Any]:
    """Return the tokens of a rank's copies, and the rank that each goes to, in the order of these.

    A token's experts are the ``top_k`` of popularity times Gumbel noise: a draw without putting
    back (Kool et al., arXiv 1903.06059).
    """
    import numpy as np

    begin, end = share(problem.tokens, ranks, rank)
    popular = Skew("", problem.popularity, problem.seed).shares(problem.experts)
    drawn = random_numbers((problem.seed,), begin * problem.experts, end * problem.experts)
    noise = -np.log(-np.log(np.clip(drawn, 1e-12, 1 - 1e-12)))
    with np.errstate(divide="ignore"):
        scores = noise.reshape(end - begin, problem.experts) + np.log(popular)
    experts = np.argsort(-scores, axis=1, kind="stable")[:, : problem.top_k]
    ends = [share(problem.experts, ranks, one)[1] for one in range(ranks)]
    to = np.searchsorted(ends, experts.reshape(-1), side="right")
    tokens = np.repeat(np.arange(begin, end), problem.top_k)
    order = np.argsort(to, kind="stable")
    return tokens[order], to[order]


def elements(problem: Routing, tokens: Any) -> Any:
    """Return the elements of tokens, a row for each."""
    import numpy as np

    kind = f"uint{8 * BYTES[problem.dtype]}"
    marks = np.arange(MARKS + problem.hidden) % MARKS
    starts = (np.asarray(tokens) * 17) % MARKS
    places = starts[:, None] + np.arange(problem.hidden)
    return marks[places].astype(kind)


def sequential(problem: Routing) -> Sequential:
    """Return NumPy's copies of the tokens, and back."""
    import numpy as np

    tokens, _ = routed(problem, 1, 0)
    own = elements(problem, np.arange(problem.tokens))

    def solve() -> Any:
        return own[tokens].copy().copy()

    return Sequential("NumPy", solve)


def compare(problem: Routing, found: Any, reference: Any) -> CheckedResult:
    """Judge what ranks counted: elements that differ from those of the tokens routed there."""
    import numpy as np

    wrong = np.sum(found, axis=0).reshape(-1)
    copies = problem.tokens * problem.top_k * problem.hidden
    text = f"{wrong[0]} of {copies} elements at experts and {wrong[1]} of those back differ"
    return CheckedResult(not wrong.any(), text, float(wrong.sum()))


APPLICATION = Application(
    name="dispatch",
    title="Dispatch of Tokens to Experts",
    summary="Tokens go to the ranks of their experts by a routing table, and come back.",
    problem=Routing,
    kernel=Dispatch,
    metric=lambda problem, seconds: problem.tokens / seconds,
    unit="tokens/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda problem, ranks: replace(problem, tokens=problem.tokens * ranks),
    details="Tokens per second go to their experts and back. The sizes of DeepSeek-V3 (arXiv "
    "2412.19437): --hidden 7168 --experts 256 --top-k 8 --dtype float8.",
)
