"""Runs as rows of numbers at full precision."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from omb_py.tracing.efficiency.series import Series, SeriesPoint, notes


def row_of(point: SeriesPoint, series: Series) -> dict[str, Any]:
    """All numbers of a run; times in seconds, what is not known is None.

    Factors are those of `metrics`: ``parallel_efficiency = load_balance *
    communication_efficiency * data_loading_efficiency`` (1 where that is None),
    ``communication_efficiency = serialisation_efficiency *
    transfer_efficiency`` and ``global_efficiency = parallel_efficiency * computation_scaling``
    hold to rounding.
    """
    run, compared = point.run, point.scaling if series.several else None
    times, factors, processor = run.times, run.efficiency, run.measured.processor
    whole = processor is not None and not processor.outside
    return {
        "run": run.name,
        "command": run.command,
        "ranks": times.ranks,
        "scaling": series.kind if series.several else None,
        "reference_ranks": series.points[0].run.times.ranks if series.several else None,
        "elapsed_s": times.elapsed,
        "ideal_s": times.ideal,
        "outside_mean_s": fmean(times.outside),
        "outside_max_s": max(times.outside),
        "outside_sum_s": times.total,
        "loading_sum_s": times.total_loading,
        "files_s": run.measured.io,
        "global_efficiency": compared.whole if compared else None,
        "parallel_efficiency": factors.parallel,
        "load_balance": factors.load_balance,
        "communication_efficiency": factors.communication,
        "serialisation_efficiency": factors.serialisation,
        "transfer_efficiency": factors.transfer,
        "data_loading_efficiency": factors.loading,
        "computation_scaling": compared.computation if compared else None,
        "speedup": compared.speedup if compared else None,
        "cpu_computation_scaling": point.processor_scaling if compared else None,
        "cpu_of_outside": processor.share if processor and not whole else None,
        "cpu_load_balance": processor.balance if processor and not whole else None,
        "cpu_of_elapsed": processor.share if processor and whole else None,
    }


def details(series: Series) -> dict[str, object]:
    """Return notes, and what a row does not hold of each run: ranks' seconds, phases, notes."""
    runs = [
        {
            "run": point.run.name,
            "outside_s": list(point.run.times.outside),
            "phases": [
                {
                    "phase": phase.name,
                    "spans": phase.spans,
                    "longest_s": phase.times.elapsed,
                    "outside_s": list(phase.times.outside),
                    "parallel_efficiency": phase.efficiency.parallel,
                    "load_balance": phase.efficiency.load_balance,
                    "communication_efficiency": phase.efficiency.communication,
                }
                for phase in point.run.phases
            ],
            "notes": list(point.run.measured.notes),
        }
        for point in series.points
    ]
    return {"runs": runs, "notes": list(notes(series))}
