"""What every file of a timeline has to obey: rules of the viewers, and of ours."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from omb_py.tracing.timeline import json_trace, perfetto_trace
from omb_py.tracing.timeline.model import Timeline


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
            (one for one in lane if one.began <= mark.began < one.ended),
            key=lambda one: one.began,
        )

    def messages(self) -> list[tuple[Slice, Slice]]:
        """For each arrow the slice that sends and the one that receives."""
        return [(send, self.received(mark)) for send, mark in self.arrows]

    def named(self, name: str) -> list[Slice]:
        """The slices of a name."""
        return [one for one in self.slices if one.name == name]

    def fillers(self) -> list[Slice]:
        """Marks that only keep ranks in order."""
        return [one for one in self.instants if one.category == "filler"]

    def lanes(self, process: str) -> list[str]:
        """Lanes of a process."""
        every = [*self.slices, *self.instants]
        return list(dict.fromkeys(one.lane for one in every if one.process == process))


def arguments_of(one: Slice) -> dict[str, Any]:
    """The arguments of a slice."""
    return dict(one.arguments)


def written(timeline: Timeline) -> tuple[Content, Content]:
    """A timeline as JSON and as protobuf, written and read again by these rules."""
    text = StringIO()
    json_trace.write(timeline, text)
    packed = BytesIO()
    perfetto_trace.write(timeline, packed)
    return of_json(text.getvalue()), of_protobuf(packed.getvalue())


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
            () if event["name"] == "about this timeline" else tuple(event["args"].items()),
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


def of_protobuf(packed: bytes) -> Content:
    """The content of a Perfetto trace; an assertion fails where it breaks a rule."""
    trace = messages.Trace.FromString(packed)
    names: dict[tuple[str, int], str] = {}
    processes: dict[int, str] = {}
    tracks: dict[int, tuple[str, str]] = {}
    content = Content()
    opened: dict[int, list[tuple[int, Any]]] = defaultdict(list)
    leaving: dict[int, tuple[int, Slice]] = {}
    arriving: dict[int, tuple[int, Slice]] = {}
    for packet in trace.packet:
        for table in ("event_names", "event_categories", "debug_annotation_names"):
            names |= {(table, one.iid): one.name for one in getattr(packet.interned_data, table)}
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            if described.HasField("process"):
                processes[described.uuid] = described.process.process_name
            else:
                assert described.uuid not in tracks
                name = described.thread.thread_name
                tracks[described.uuid] = processes[described.parent_uuid], name
            continue
        event = packet.track_event
        if event.type == event.TYPE_SLICE_END:
            began, first = opened[event.track_uuid].pop()
            one = described_slice(first, names, tracks[event.track_uuid], began, packet.timestamp)
            content.slices.append(one)
            leaving |= dict.fromkeys(first.flow_ids, (began, one))
        elif event.type == event.TYPE_SLICE_BEGIN:
            opened[event.track_uuid].append((packet.timestamp, event))
        elif event.name:
            content.about = {one.name: one for one in event.debug_annotations}
            place = tracks[event.track_uuid]
            content.instants.append(Slice(*place, 0, 0, event.name, event.name, ()))
        else:
            place = tracks[event.track_uuid]
            at = packet.timestamp
            mark = described_slice(event, names, place, at, at)
            content.instants.append(mark)
            arriving |= dict.fromkeys(event.terminating_flow_ids, (at, mark))
    assert not any(opened.values())
    assert set(leaving) == set(arriving)
    for flow in sorted(leaving):
        content.arrows.append((leaving[flow][1], arriving[flow][1]))
    check_arrows(content)
    assert overlapping(content.slices) == []
    return content


def described_slice(
    event: Any, names: dict[tuple[str, int], str], place: tuple[str, str], began: int, ended: int
) -> Slice:
    """A slice with the names that its numbers stand for."""
    arguments = tuple(
        (
            names["debug_annotation_names", one.name_iid],
            getattr(one, str(one.WhichOneof("value"))),
        )
        for one in event.debug_annotations
    )
    (category,) = event.category_iids
    name = names["event_names", event.name_iid]
    return Slice(*place, began, ended, name, names["event_categories", category], arguments)


def ordered(slices: list[Slice]) -> list[Slice]:
    """Slices in an order that does not depend on the file."""
    return sorted(slices, key=repr)
