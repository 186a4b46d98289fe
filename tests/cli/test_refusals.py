"""A command line that cannot be obeyed: one sentence that names what helps, and no file."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from omb_py.analysis.references import shipped
from tests import RESULTS, ROOT
from tests.conftest import Run
from tests.helpers.refusals import assert_refused
from tests.sweeps.job_scripts import MACHINE, SWEEP
from tests.tracing.made_records import MadeRecord

DATA = ROOT / "tests" / "data"
MPICH, OPEN_MPI = RESULTS / "families-mpich.csv", RESULTS / "families-openmpi.csv"
TABLE, OVERHEAD = RESULTS / "two-core-vm.csv", RESULTS / "overhead-mpich.csv"
APPLICATIONS, PAIRS = RESULTS / "applications-mpich.csv", DATA / "pairs/one-slow-card.csv"
NATIVE = DATA / "omb/osu_latency.txt"

REFUSED = {
    f"check {NATIVE}": {
        "": "--expected --update",
        "--expected alps-gh200 --update a.csv": "--expected --update",
        "--expected nowhere": f"nowhere {shipped()[0]} {shipped()[-1]}",
        "--update a.txt": "a.txt .csv .json",
        "--update a.csv -o b.csv": "--output --update",
        "--update a.csv": "repeated launches",
        "--update a.csv --confirm 2": "--confirm --update",
        "--expected alps-gh200 --again osu_latency": "--again --confirm",
        "--expected alps-gh200 --confirm 0": "--confirm",
        "--expected alps-gh200 --confirm 2 --again ''": "--again is empty",
    },
    f"compare {MPICH}": {
        "": "BASE OTHER",
        f"{MPICH} -o table.pdf": "--output table.pdf: .csv",
        f"{MPICH} --name one": "2 different names",
        f"{MPICH} --no-such-option": "--no-such-option",
        f"{OPEN_MPI} --where iterations=7": "no row iterations=7: there are",
        f"{OPEN_MPI} --confirm 2": "--confirm",
        f"{OPEN_MPI} --again osu_latency --fail-above 5%": "--confirm",
        f"{OPEN_MPI} --confirm 2 --fail-above 5% --native /opt/omb": "--confirm",
    },
    "compare --native": {
        "/no/such latency": "/no/such no such file",
        "/ import_time": "native OMB import_time",
        "/ latenci": "unknown benchmark 'latenci' latency",
        "/": "BENCHMARK first",
        "/ latency --binding native": "--bindings",
        "/bin/true latency --sizes=8": "native OMB no --sizes sizes by -m",
        "/bin/true latency --stats": "native OMB no --stats leave it out",
        "/ latency --bindings nativ": "unknown binding 'nativ'",
        "/ hello": "native hello no time: compare init",
        "/ init --bindings buffer": "leave out --bindings",
        "/bin/true latency -m 1:1X": "-m 1:1X: '1X' number",
    },
    f"show {MPICH}": {
        "-o x.xyz": "--output x.xyz: .txt, .md, .csv, .json, .parquet",
        "-o x": "x --format",
        "-o x.csv --rows 5": "--rows tables",
        "-o x.csv --across binding": "--across tables",
        "--format parquet": "parquet file --output",
        "--columns latency_ms": "no column 'latency_ms': did you mean latency_us",
        "--across binding --base tcp": "--base tcp: configuration",
        "--across bindings": "no column 'bindings': did you mean binding",
        "--base buffer": "--base --across",
        "--across window_kind --where benchmark=latency": "several window_kind",
        f"{OVERHEAD} -o out.parquet": "rows of different kinds to CSV",
    },
    "": {
        "model x.csv -o m.pdf": "--output m.pdf: .txt, .md",
        "guidelines x.csv -o g.xyz": "--output g.xyz: .txt, .md",
        "compare x.csv -o c.pdf": "--output c.pdf: .txt, .md",
        "simulate x.csv -o s.xml": "--output s.xml: .txt, .md",
        "guidelines": "Missing argument 'FILE...'",
        f"guidelines {MPICH} --only bcst": "--only bcst: choose from emulation",
        f"guidelines {MPICH} --fail-above 5": "--fail-above 5: write 5% or 1.05x",
        "osu_bw -d openacc D D": "-d openacc: no array library -d cuda",
        "latency -d sycl": "-d sycl: --buffer dpnp",
        "osu_allreduce -P PAPI_TOT_INS:out": "-P: PAPI counters",
        "osu_latncy": "unknown benchmark 'osu_latncy': did you mean latency",
        "latency -v": "No such option -v",
        "run.py --benchmark latency --device 0": "No such option --device",
        "run.py --benchmark async_lat": "unknown benchmark async_lat",
        "run.py --benchmark bw --buffer jaxx": "unknown buffer jaxx numpy",
        "run.py --benchmark bw --iterations 0": "--iterations 0 range",
        "run.py --buffer numpy": "Missing option --benchmark",
        "latency -d cuda": "-d --buffer cupy",
        "latency -np 2": "launcher's: mpiexec -n 2 omb-py latency",
        "overhead barrier --binding tcp": "mean '--bindings'? 'omb-py overhead barrier --help'",
        "latency --np 2": "launcher's: mpiexec -n 2 omb-py latency",
        "histroy": "unknown command or benchmark 'histroy': did you mean history?",
    },
    "plot": {
        f"{TABLE} --output all.svg": "name a folder",
        f"{TABLE} --where benchmark=latency -o latency.svg --format png": "name a folder",
        f"{TABLE} --where benchmark=latency --output latency.gif": "png, svg, pdf",
        f"{TABLE} --where benchmark=latency --format gif": "'gif' is not one of",
        f"{PAIRS} --kind pairs --format text": "another --format",
    },
    "timeline": {
        "run --ranks 2-1": "'2-1' range of ranks",
        "run --ranks x": "'x' ranks: 0-3,8",
        "run --ranks 7": "no record rank 7",
        "nowhere": "nowhere no records omb-py profile",
        "run -o run": "run timeline written .json",
        "run -o d.txt": "written as .json or .json.gz",
    },
    "job render scaling": {
        "": "--machine MACHINE",
        "--machine polari": "'polari' did you mean 'polaris'",
        "--machine local": "machine local no scheduler",
    },
    "job render mine.toml --machine here.toml": {
        "--account '$(id)'": "--account: '$' '$(id)' letters, _ . / : @ = ,",
        "--queue 'a b'": "--queue: a blank 'a b'",
        "--queue ''": "--queue: '' write letters, digits",
        "--account -x": "'-x' scheduler letters, digits",
        "--walltime soon": "--walltime: 'soon' duration such as",
        "--walltime 30s": "walltime 00:00:30",
        "--nodes 3": "no point 3 nodes here",
        "--nodes 1 --folder 'a b'": "'a b' scheduler a blank",
    },
}
"""By the beginning of a command line, its further words, and what the sentence contains."""

OTHER_CODES = {
    "osu_bw -d rocm D D": (8, "-d rocm: no device cupy:"),
    "osu_bw -d sycl D D": (8, "-d sycl: no device dpnp:"),
    "osu_bw -d cuda D D": (8, "-d cuda: no device cupy:"),
    "osu_allreduce -d managed": (8, "-d managed: no device"),
    f"compare {MPICH} /no/such.csv": (1, "cannot read /no/such.csv"),
    f"compare {MPICH} {MPICH} -o /proc/none/t.csv": (1, "cannot write /proc/none/t.csv"),
    "guidelines nowhere.csv": (1, "nowhere.csv"),
    f"plot {TABLE} --kind overhead": (1, "omb-py overhead"),
}

UNUSED = {
    f"show {APPLICATIONS} --speedup": "--statistic mean, --rows 1, --name foo, --assume ranks=3, "
    "--base x, --columns time_s",
    f"show {TABLE} --across binding": "--columns bytes, --rows 1",
    f"show {TABLE}": "--statistic mean",
    f"plot {APPLICATIONS} --kind speedup": "--sizes 8, --statistic mean, --name foo, "
    "--assume ranks=3",
    f"plot {APPLICATIONS} --kind phases": "--lines nosuch, --value p99",
    f"plot {OVERHEAD} --kind overhead": "--lines binding, --value p99, --statistic mean, "
    "--name foo",
    f"plot {PAIRS} --kind pairs": "--lines binding, --value p99, --statistic mean",
    f"plot {TABLE} --format text": "--width 8cm, --theme dark, --force",
    f"check {TABLE} --update new.csv": "--confirm 2, --again x, --launcher x, --timeout 5, "
    "--keep runs, --tolerance 5%, --format json",
    f"check {TABLE} --expected fugaku": "--launcher x, --timeout 5, --keep runs",
    f"compare {TABLE} {TABLE}": "--bindings native, --ranks 2, --precision 5%, --max-time 5, "
    "--rounds 3, --launcher x, --timeout 5, --keep runs",
    f"compare {TABLE} {TABLE} --summary": "--format json",
    "compare --native /bin/true latency": "--assume ranks=3",
    f"model {PAIRS} --network net.toml": "--format json, --output model.csv",
    f"simulate --check {TABLE} --network net.toml": "--ranks 4, --ranks-per-node 2, "
    "--placement packed, --sizes 8, --library mpich, --coll-algorithm all, --p2p-algorithm all, "
    "--root 0, --window 2, --sync clock",
    "simulate latency --ranks 2": "--library mpich, --coll-algorithm all",
    "simulate barrier --ranks 2": "--sizes 8",
    "sweep quick": "--commands",
}
"""Options that a mode does not use: refused by name, never ignored."""

CASES = [
    *((f"{start} {words}", 2, says) for start, of in REFUSED.items() for words, says in of.items()),
    *((line, code, says) for line, (code, says) in OTHER_CODES.items()),
    *(
        (f"{mode} {option}", 2, option.split()[0])
        for mode, options in UNUSED.items()
        for option in options.split(", ")
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a sweep, a machine, and the records of a run of three ranks."""
    (tmp_path / "mine.toml").write_text(SWEEP)
    (tmp_path / "here.toml").write_text(MACHINE)
    (tmp_path / "run").mkdir()
    for rank in range(3):
        MadeRecord(tmp_path / "run", rank, 3).finish(4000)
    return tmp_path


@pytest.mark.parametrize(("line", "code", "says"), CASES, ids=lambda value: str(value)[-60:])
def test_command_line_that_cannot_be_obeyed_refused(
    in_process: Run, folder: Path, line: str, code: int, says: str
) -> None:
    before = sorted(folder.rglob("*"))
    done = in_process(*shlex.split(line), CUDA_VISIBLE_DEVICES="")
    assert_refused(done, code, says)
    assert done.out == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_refusal_is_all_that_a_command_prints(omb_py: Run) -> None:
    done = omb_py("compare", str(MPICH))
    assert_refused(done, 2, "BASE OTHER")
    assert done.sentences == [done.err.strip()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (f"show {APPLICATIONS} --speedup --across application --columns time_s", "time_s by app"),
        (
            f"plot {APPLICATIONS} --kind speedup --where application=kmeans --format text",
            "kmeans: Speed-up",
        ),
    ],
)
def test_option_that_the_mode_uses_is_obeyed(in_process: Run, words: str, found: str) -> None:
    done = in_process(*shlex.split(words))
    assert done.code == 0
    assert found in done.out
