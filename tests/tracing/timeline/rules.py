"""What every file of a timeline has to obey: rules of the viewers, and of ours."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from omb_py.tracing.timeline import json_trace
from omb_py.tracing.timeline.assembly import Timeline


@dataclass(frozen=True)
class Slice:
    """A slice as a file has it; times in ns."""

    process: str
    lane: str
    began: int
    ended: int
    name: str
    category: str
    arguments: tuple[tuple[str, Any], ...]


@dataclass
class Content:
    """What a file holds; an arrow is the slice that it leaves and the mark that it ends in."""

    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    arrows: list[tuple[Slice, Slice]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def of(self, process: str, lane: str) -> list[Slice]:
        """The slices of a lane."""
        return [one for one in self.slices if (one.process, one.lane) == (process, lane)]

    def received(self, mark: Slice) -> Slice:
        """The slice that a mark of an arrival lies in."""
        lane = self.of(mark.process, mark.lane)
        return max(
            (one for one in lane if one.began <= mark.began < one.ended), key=lambda one: one.began
        )

    def messages(self) -> list[tuple[Slice, Slice]]:
        """For each arrow the slice that sends and the one that receives."""
        return [(send, self.received(mark)) for send, mark in self.arrows]

    def named(self, name: str) -> list[Slice]:
        """The slices of a name."""
        return [one for one in self.slices if one.name == name]


def arguments_of(one: Slice) -> dict[str, Any]:
    """The arguments of a slice."""
    return dict(one.arguments)


def written(timeline: Timeline) -> Content:
    """A timeline as JSON, written and read again by these rules."""
    text = StringIO()
    json_trace.write_events(timeline, text)
    return of_json(text.getvalue())


def nanoseconds(microseconds: float) -> int:
    """A time of a file in JSON."""
    found = round(microseconds * 1000)
    assert abs(found - microseconds * 1000) < 0.01
    return found


def of_json(text: str) -> Content:
    """The content of trace events in JSON; an assertion fails where they break a rule."""
    document = json.loads(text)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    processes: dict[int, str] = {}
    lanes: dict[int, tuple[int, str]] = {}
    content = Content(about=document["otherData"])
    flows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in document["traceEvents"]:
        kind, process, lane = event["ph"], event["pid"], event["tid"]
        assert process > 0
        assert lane > 0
        if kind == "M":
            named(event, processes, lanes)
            continue
        assert lanes[lane][0] == process, "a lane has its name before its slices"
        if kind in ("s", "f"):
            assert kind not in flows[event["id"]]
            assert (event["name"], event["cat"]) == ("message", "message")
            assert kind == "s" or event["bp"] == "e"
            flows[event["id"]][kind] = event
            continue
        began = nanoseconds(event["ts"])
        one = Slice(
            processes[process],
            lanes[lane][1],
            began,
            began + nanoseconds(event.get("dur", 0)),
            event["name"],
            event["cat"],
            tuple(event["args"].items()),
        )
        assert began >= 0 or one.name == "compute"
        if kind == "i":
            assert event["s"] == "t"
            content.instants.append(one)
        else:
            assert kind == "X"
            content.slices.append(one)
    check_lanes(content, processes)
    for number in sorted(flows):
        out, into = flows[number]["s"], flows[number]["f"]
        assert out["ts"] <= into["ts"]
        send = bound(content, processes[out["pid"]], lanes[out["tid"]][1], out["ts"])
        mark = marked(content, processes[into["pid"]], lanes[into["tid"]][1], into["ts"])
        content.arrows.append((send, mark))
    check_arrows(content)
    return content


def named(
    event: dict[str, Any], processes: dict[int, str], lanes: dict[int, tuple[int, str]]
) -> None:
    """Take note of the name of a process or a thread."""
    if event["name"] == "process_name":
        assert event["pid"] not in processes
        processes[event["pid"]] = event["args"]["name"]
    elif event["name"] == "thread_name":
        assert event["tid"] not in lanes, "no thread has two names or two processes"
        lanes[event["tid"]] = (event["pid"], event["args"]["name"])
    else:
        assert event["name"] in ("process_sort_index", "thread_sort_index")


def check_lanes(content: Content, processes: dict[int, str]) -> None:
    """Slices of a lane contain each other or lie apart; names sort as ranks do."""
    names = [processes[number] for number in sorted(processes)]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    assert overlapping(content.slices) == []


def overlapping(slices: list[Slice]) -> list[tuple[Slice, Slice]]:
    """Slices of one lane of which neither contains the other, though they share some time."""
    by_lane: dict[tuple[str, str], list[Slice]] = defaultdict(list)
    for one in slices:
        assert one.ended >= one.began
        by_lane[one.process, one.lane].append(one)
    found = []
    for members in by_lane.values():
        inside: list[Slice] = []
        for one in sorted(members, key=lambda each: (each.began, -each.ended)):
            while inside and inside[-1].ended <= one.began:
                inside.pop()
            if inside and one.ended > inside[-1].ended:
                found.append((inside[-1], one))
            inside.append(one)
    return found


def bound(content: Content, process: str, lane: str, at: float) -> Slice:
    """The slice that an arrow leaves: the innermost one around its beginning."""
    time = nanoseconds(at)
    around = [one for one in content.of(process, lane) if one.began <= time < one.ended]
    assert around, "an arrow begins in a slice"
    return max(around, key=lambda one: one.began)


def marked(content: Content, process: str, lane: str, at: float) -> Slice:
    """The mark that an arrow ends in: the only one at its time."""
    (found,) = (
        one
        for one in content.instants
        if (one.process, one.lane, one.began) == (process, lane, nanoseconds(at))
        and one.category == "arrival"
    )
    return found


def check_arrows(content: Content) -> None:
    """Every arrow has a mark of its own, which no viewer takes to be before its beginning."""
    marks = [one for one in content.instants if one.category == "arrival"]
    assert sorted(map(repr, marks)) == sorted(repr(mark) for _, mark in content.arrows)
    for send, mark in content.arrows:
        assert send.began <= mark.began == content.received(mark).ended - 1
        assert arguments_of(mark) == {"source": int(send.process[5:9])}
