"""What is odd about a line over message sizes: switches, single sizes, larger that is faster.

All is judged by time against size, both in logarithms: there a latency's or bandwidth's line is
smooth, and a factor is a distance. A bandwidth becomes the time that one byte of it takes, times
the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.grouping import Points
from omb_py.core.text.units import digits, size_text, value_text

SWITCH = 1.3
"""Factor by which a step in size costs more than the steps around it: a change of protocol costs
a handshake or a copy; a cache that is left costs less at one step."""

STAYS = 0.95
"""The size after a switch takes at least this part of the one before: one slow size is none."""

DEVIATION = 1.3
"""Factor between a size and what the sizes on both sides of it let expect."""

DEVIATION_OVER_NOISE = 4.0
"""The threshold in units of the line's own typical deviation: a ragged line has no odd sizes."""

STEEPEST = 1.2
"""Power of the size with which time is expected to grow at most: once bandwidth limits it, 1."""

FASTER = 1.1
"""Factor by which a larger message must be faster, besides their intervals being apart."""


@dataclass(frozen=True)
class Oddity:
    """``kind`` of what is odd, in which line (row of `Points.series`), at which size, in words."""

    kind: str
    series: int
    size: int
    text: str


@dataclass(frozen=True)
class Lines:
    """Points of all lines one after the other.

    Natural logarithms of sizes and times, of the ends of the times' intervals, and which line.
    """

    size: np.ndarray
    time: np.ndarray
    low: np.ndarray
    high: np.ndarray
    series: np.ndarray

    def shifted(self, values: np.ndarray, by: int) -> np.ndarray:
        """``values`` of the point ``by`` further in the same line; missing where there is none."""
        moved = np.full(len(values), np.nan)
        if abs(by) >= len(values):
            return moved
        here = slice(max(0, -by), len(values) - max(0, by))
        there = slice(max(0, by), len(values) + min(0, by))
        same = self.series[here] == self.series[there]
        moved[here] = np.where(same, values[there], np.nan)
        return moved


def curve_oddities(points: Points) -> Iterator[Oddity]:
    """All that is odd over message sizes; sizes of 0 bytes have no place on such a line."""
    frame = points.points
    sized = frame[(pd.to_numeric(frame["bytes"]).fillna(0) > 0) & (frame["value"] > 0)]
    if sized.empty:
        return
    unit = points.series["unit"].to_numpy()[sized["series"]]
    lines = lines_of(sized, unit)
    odd = deviations(lines)
    described = Described(sized.reset_index(drop=True), unit)
    for index in np.flatnonzero(np.abs(odd) > 0):
        yield described.deviation(int(index), float(np.exp(odd[index])))
    excess, usual = switches(lines, odd)
    for index in np.flatnonzero(excess > np.log(SWITCH)):
        factor = float(np.exp(excess[index] + usual[index]))
        yield described.switch(int(index), factor, float(np.exp(usual[index])))
    faster = larger_is_faster(lines, odd)
    yield from described.faster(np.flatnonzero(faster))


def lines_of(frame: pd.DataFrame, unit: np.ndarray) -> Lines:
    """Points as times. Several runs have the range of their values as interval."""
    size = frame["bytes"].to_numpy(dtype="float64")
    several = frame["runs"].to_numpy() > 1
    value = frame["value"].to_numpy(dtype="float64")

    def end(of_runs: str, of_samples: str) -> np.ndarray:
        samples = frame[of_samples].to_numpy(dtype="float64")
        ends = np.where(several, frame[of_runs].to_numpy(dtype="float64"), samples)
        known: np.ndarray = np.where(np.isfinite(ends) & (ends > 0), ends, value)
        return known

    low, high = end("minimum", "low"), end("maximum", "high")
    is_time = unit == "us"
    amount = np.where(unit == "MB/s", size, 1.0)
    return Lines(
        np.log(size),
        np.log(np.where(is_time, value, amount / value)),
        np.log(np.where(is_time, low, amount / high)),
        np.log(np.where(is_time, high, amount / low)),
        frame["series"].to_numpy(),
    )


def switches(lines: Lines, odd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much more the step after each point costs than usual, and what is usual; logarithms.

    Usual is the steepest of up to two steps on either side. No switch is seen at the ends of a
    line, where one side is missing, nor beside an ``odd`` size or where the next step falls back.
    """
    step = lines.shifted(lines.time, 1) - lines.time
    width = lines.shifted(lines.size, 1) - lines.size
    slope = step / width
    before = np.fmax(lines.shifted(slope, -1), lines.shifted(slope, -2))
    after = np.fmax(lines.shifted(slope, 1), lines.shifted(slope, 2))
    usual = np.fmax(np.maximum(before, after), 0) * width
    stays = lines.shifted(step, 1) >= np.log(STAYS)
    clear = lines.shifted(lines.low, 1) > lines.high
    known = np.isfinite(before) & np.isfinite(after) & stays & clear
    known &= (odd == 0) & (lines.shifted(odd, 1) == 0)
    return np.where(known, step - usual, -np.inf), usual


def deviations(lines: Lines) -> np.ndarray:
    """How far each point is off what both sides let expect, in logarithms; 0 if it is not odd.

    Each side foretells the point by the line through its two nearest points, as steep as times
    can be. At a step or a bend one of both sides is right.
    """
    width = lines.shifted(lines.size, 1) - lines.size
    slope = np.clip((lines.shifted(lines.time, 1) - lines.time) / width, 0, STEEPEST)
    left = lines.shifted(lines.time, -1) + lines.shifted(slope, -2) * lines.shifted(width, -1)
    right = lines.shifted(lines.time, 1) - lines.shifted(slope, 1) * width
    nearest = np.minimum(np.abs(lines.time - left), np.abs(lines.time - right))
    same_side = np.sign(lines.time - left) == np.sign(lines.time - right)
    off = np.where(same_side, nearest, 0.0)
    noise = pd.Series(np.where(np.isfinite(left + right), off, np.nan)).groupby(lines.series)
    usual = noise.transform("median").to_numpy()
    odd = (off > np.log(DEVIATION)) & (off > DEVIATION_OVER_NOISE * usual)
    signed: np.ndarray = np.where(odd, np.sign(lines.time - left) * off, 0.0)
    return signed


def larger_is_faster(lines: Lines, odd: np.ndarray) -> np.ndarray:
    """Points whose next larger size is faster, where neither of the two is an odd one itself."""
    faster = lines.shifted(lines.time, 1) < lines.time - np.log(FASTER)
    apart = lines.shifted(lines.high, 1) < lines.low
    found: np.ndarray = faster & apart & (odd == 0) & (lines.shifted(odd, 1) == 0)
    return found


@dataclass(frozen=True)
class Described:
    """Findings about rows of a frame of points in words, in the unit of their line."""

    points: pd.DataFrame
    unit: np.ndarray

    def value(self, index: int) -> str:
        """A point's value with its unit."""
        return value_text(float(self.points["value"].iloc[index]), self.unit[index])

    def size(self, index: int) -> int:
        """A point's size in bytes."""
        return int(self.points["bytes"].iloc[index])

    def oddity(self, kind: str, index: int, text: str) -> Oddity:
        """A finding about the line and the size of a point."""
        return Oddity(kind, int(self.points["series"].iloc[index]), self.size(index), text)

    def deviation(self, index: int, factor: float) -> Oddity:
        """A size that is off; ``factor`` is its time over what was to be expected."""
        words = f"{digits(max(factor, 1 / factor))} times {'slower' if factor > 1 else 'faster'}"
        text = (
            f"{self.value(index)} at {size_text(self.size(index))} is {words} than the sizes on "
            f"both sides let expect."
        )
        return self.oddity("odd size", index, text)

    def switch(self, index: int, factor: float, usual: float) -> Oddity:
        """A step after a point at which a message takes longer at once."""
        text = (
            f"From {size_text(self.size(index))} to {size_text(self.size(index + 1))} a message "
            f"takes {digits(factor)} times as long ({self.value(index)}, then "
            f"{self.value(index + 1)}); steps around it cost at most {digits(usual)} times as "
            "much: likely a switch of protocol (eager to rendezvous) or of algorithm."
        )
        return self.oddity("switch", index + 1, text)

    def faster(self, indices: np.ndarray) -> Iterator[Oddity]:
        """Larger messages that are faster, each line's maximum case with the number of others."""
        cases: dict[int, list[int]] = {}
        for index in indices.tolist():
            cases.setdefault(int(self.points["series"].iloc[index]), []).append(index)
        for members in cases.values():
            worst = max(members, key=self.gain)
            others = len(members) - 1
            more = f" (and at {others} more size{'s' * (others > 1)})" if others else ""
            text = (
                f"{size_text(self.size(worst + 1))} takes less time than "
                f"{size_text(self.size(worst))}, by more than their intervals: "
                f"{self.value(worst + 1)} after {self.value(worst)}{more}."
            )
            yield self.oddity("larger is faster", worst + 1, text)

    def gain(self, index: int) -> float:
        """How much faster the next size is, as a factor."""
        ratio = self.points["value"].iloc[index] / self.points["value"].iloc[index + 1]
        return float(ratio if self.unit[index] == "us" else 1 / ratio)
