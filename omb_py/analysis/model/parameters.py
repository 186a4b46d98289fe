"""The parameters of a model as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.model.fit import Curve, Model
from omb_py.analysis.model.lines import Lines, Switch
from omb_py.analysis.model.over_ranks import Candidate, OverRanks, Piece

COLUMNS = (
    "benchmark",
    "curve",
    "ranks",
    "first_bytes",
    "last_bytes",
    "algorithm",
    "formula",
    "same_formula",
    "place",
    "alpha_us",
    "alpha_low_us",
    "alpha_high_us",
    "beta_us_per_byte",
    "beta_low_us_per_byte",
    "beta_high_us_per_byte",
    "gamma_in_beta",
    "bandwidth_MBps",
    "bandwidth_low_MBps",
    "bandwidth_high_MBps",
    "half_bytes",
    "points",
    "rms_error",
    "worst_error",
    "next_after_bytes",
    "next_before_bytes",
    "next_low_bytes",
    "next_high_bytes",
)


def parameters(model: Model) -> pd.DataFrame:
    """A row for each range of sizes of each fit.

    Fits over sizes have the formula ``alpha + n beta``, one row for each number of ranks and range
    of sizes. Fits over ranks have a row for each formula too: ``place`` 1 is the one that fits
    best, 2 and so on those that fit as well, and it is empty for the rest; with one
    number of ranks all fit alike. Intervals (``low``, ``high``) are of 95 %. ``gamma_in_beta`` is
    how much of gamma is in beta. ``bandwidth_MBps`` is 1 / beta, ``half_bytes`` alpha / beta, the
    size at which half of it is reached. Errors are relative. The switch to the next range is
    between sizes ``next_after_bytes`` and ``next_before_bytes``, with 95 % between
    ``next_low_bytes`` and ``next_high_bytes``.
    """
    rows = [row for curve in model.curves for row in of_curve(curve)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    integers = [name for name in COLUMNS if name.endswith("bytes") and name != "half_bytes"]
    return frame.astype(dict.fromkeys([*integers, "place", "points"], "Int64"))


def of_curve(curve: Curve) -> Iterator[dict[str, Any]]:
    """One curve's part of `parameters`."""
    for number, fitted in curve.lines.items():
        for index in range(len(fitted.first)):
            yield {
                "benchmark": curve.benchmark,
                "curve": curve.label,
                "ranks": str(number),
                **of_line(fitted, index),
            }
    if curve.over_ranks is None:
        return
    for index, piece in enumerate(curve.over_ranks.pieces):
        for place, candidate in enumerate((*piece.fitting, *piece.others), start=1):
            yield {
                "benchmark": curve.benchmark,
                "curve": curve.label,
                "ranks": " ".join(f"{number:.0f}" for number in curve.over_ranks.ranks),
                "place": place if place <= len(piece.fitting) else None,
                **of_candidate(curve.over_ranks, piece, candidate, curve.sized),
                **of_switch(curve.over_ranks.switches, index),
            }


def of_line(fitted: Lines, index: int) -> dict[str, Any]:
    """One range of a fit over sizes."""
    (alpha_low, alpha_high), (beta_low, beta_high) = fitted.intervals()
    return {
        "first_bytes": int(fitted.first[index]),
        "last_bytes": int(fitted.last[index]),
        "formula": "alpha + n beta",
        "place": 1,
        **costs(
            float(fitted.fits.alpha[index]),
            (float(alpha_low[index]), float(alpha_high[index])),
            float(fitted.fits.beta[index]),
            (float(beta_low[index]), float(beta_high[index])),
            float(fitted.last[index]),
        ),
        "points": fitted.points[index],
        **goodness(float(fitted.rms[index]), float(fitted.worst[index]), fitted.degrees),
        **of_switch(fitted.switches, index),
    }


def of_candidate(
    fitted: OverRanks, piece: Piece, candidate: Candidate, sized: bool
) -> dict[str, Any]:
    """One formula in one range of a fit over ranks."""
    of_alpha, of_beta = candidate.intervals()
    shape = candidate.shape
    return {
        "first_bytes": int(piece.first) if sized else None,
        "last_bytes": int(piece.last) if sized else None,
        "algorithm": shape.name,
        "formula": shape.formula,
        "same_formula": ", ".join(algorithm.name for algorithm in shape.algorithms[1:]),
        **costs(
            float(candidate.fits.alpha), of_alpha, float(candidate.fits.beta), of_beta, piece.last
        ),
        "gamma_in_beta": shape.gamma,
        "points": piece.points,
        **goodness(candidate.rms, candidate.worst, candidate.degrees),
    }


def goodness(rms: float, worst: float, degrees: int) -> dict[str, float]:
    """Errors of a fit; nothing where it has as many costs as points, and so no errors."""
    return {"rms_error": rms, "worst_error": worst} if degrees > 0 else {}


def costs(
    alpha: float,
    of_alpha: tuple[float, float],
    beta: float,
    of_beta: tuple[float, float],
    last: float = np.inf,
) -> dict[str, Any]:
    """Two costs with their intervals, and what follows from them; nothing where one is zero.

    No bandwidth without an interval either where half of it is reached only beyond ``last`` bytes:
    two small messages have the same time but for noise.
    """
    low, high = of_beta
    told = beta > 0 and (low == low or alpha / beta <= last)
    return {
        "alpha_us": alpha,
        "alpha_low_us": of_alpha[0],
        "alpha_high_us": of_alpha[1],
        "beta_us_per_byte": beta,
        "beta_low_us_per_byte": low,
        "beta_high_us_per_byte": high,
        "bandwidth_MBps": 1 / beta if told else None,
        "bandwidth_low_MBps": 1 / high if high > 0 else None,
        "bandwidth_high_MBps": 1 / low if low > 0 else None,
        "half_bytes": alpha / beta if told else None,
    }


def of_switch(switches: tuple[Switch, ...], index: int) -> dict[str, Any]:
    """The switch at the end of a range, if there is one."""
    if index >= len(switches):
        return {}
    switch = switches[index]
    return {
        "next_after_bytes": int(switch.after),
        "next_before_bytes": int(switch.before),
        "next_low_bytes": int(switch.low),
        "next_high_bytes": int(switch.high),
    }
