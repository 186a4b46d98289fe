"""The product of two dense matrices: rows of the first are divided, the second goes to all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omb_py.apps import Application, CheckedResult, Kernel, Sequential, option
from omb_py.apps.runtime.distribution import BlockDistribution, broadcast
from omb_py.apps.runtime.team import Team

FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class Matrices:
    """Two matrices, of ``rows`` x ``inner`` and ``inner`` x ``columns`` elements."""

    rows: int = option(1024, "Rows of the first matrix.", minimum=1)
    inner: int = option(1024, "Columns of the first and rows of the second one.", minimum=1)
    columns: int = option(1024, "Columns of the second matrix.", minimum=1)
    dtype: str = option("float32", "Element type.", choices=FLOATS)
    seed: int = option(1, "Of the generated elements.", minimum=0)


class Product(Kernel[Matrices]):
    """Scatter rows, broadcast, multiply, gather rows."""

    def __init__(self, team: Team, problem: Matrices) -> None:
        super().__init__(team, problem)
        dtype = problem.dtype
        self._first = BlockDistribution(team, (problem.rows, problem.inner), dtype)
        self._second = team.array((problem.inner, problem.columns), dtype)
        self._product = BlockDistribution(team, (problem.rows, problem.columns), dtype)
        if self._first.whole is not None:
            first, second = generate(problem)
            self._first.whole.data[...] = team.xp.asarray(first)
            self._second.data[...] = team.xp.asarray(second)
        self._broadcast = broadcast(team, self._second)

    def distribute(self) -> None:
        self._first.scatter()
        self._broadcast()

    def solve(self) -> None:
        team = self.team
        with team.computing:
            team.xp.matmul(self._first.mine.data, self._second.data, out=self._product.mine.data)
        self._product.gather()

    def result(self) -> Any:
        whole = self._product.whole
        return None if whole is None else self.team.on_host(whole.data)


def generate(problem: Matrices) -> tuple[Any, Any]:
    """Return the two matrices, of elements from -1 to 1."""
    import numpy as np

    random = np.random.default_rng(problem.seed)
    shapes = (problem.rows, problem.inner), (problem.inner, problem.columns)
    first, second = (random.uniform(-1, 1, shape).astype(problem.dtype) for shape in shapes)
    return first, second


def sequential(problem: Matrices) -> Sequential:
    """Return NumPy's product."""
    import numpy as np

    first, second = generate(problem)
    product = np.empty((problem.rows, problem.columns), problem.dtype)
    return Sequential("NumPy", lambda: np.matmul(first, second, out=product))


def compare(problem: Matrices, product: Any, reference: Any) -> CheckedResult:
    """Compare; elements may differ by the rounding of sums of ``inner`` products."""
    import numpy as np

    scale = float(np.sqrt(problem.inner))
    difference = float(np.abs(product - reference).max()) / scale
    limit = scale * float(np.finfo(problem.dtype).eps)
    text = f"elements differ from NumPy's by {difference:.2g} of their size (limit {limit:.2g})"
    return CheckedResult(difference <= limit, text, difference)


APPLICATION = Application(
    name="matmul",
    title="Matrix Product",
    summary="Dense matrix product, rows divided over the ranks.",
    problem=Matrices,
    kernel=Product,
    metric=lambda problem, seconds: (
        2 * problem.rows * problem.inner * problem.columns / seconds / 1e9
    ),
    unit="GFLOP/s",
    compare=compare,
    sequential=sequential,
    weak_scaled=lambda problem, ranks: replace(problem, rows=problem.rows * ranks),
)
