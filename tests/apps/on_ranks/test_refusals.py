"""Applications that cannot run as asked: one sentence of all ranks, and no row."""

from __future__ import annotations

from tests import ROOT
from tests.helpers.battery import Battery, Line, each_line, line, refused

QUICK = "--repeats 1 --warmup-repeats 0"
KMEANS = f"kmeans --samples 500 --features 3 --lloyd-iterations 6 --dtype float64 {QUICK}"
TRAIN = f"train {QUICK} --model resnet20 --samples 80 --batch 24 --epochs 2"
DATA = ROOT / "tests" / "data" / "mpitrace"
REPLAY = f"replay {DATA / 'thetagpu-cpu-16ranks.txt'} {QUICK}"

REFUSED: dict[Line, str] = {
    line(2, "matmul --dtype int8"): "'float32', 'float64'",
    line(2, "matmul --threads 0"): "--threads",
    line(2, "matmul --scaling both"): "'strong', 'weak'",
    line(2, "matmul --buffer numpi"): "unknown buffer 'numpi'",
    line(2, "matmul --buffer cupy"): "cupy",
    line(2, "matmul --binding nativ"): "unknown binding 'nativ'",
    line(2, "matmul --staging"): "--staging device",
    line(2, "matmul --output results.txt"): "results.txt .csv .json",
    line(2, "matmul --force"): "--force",
    line(3, "matmul --binding pickle"): "binding pickle scatterv 1023 rows 1024 3 ranks",
    line(2, "pi --scaling weak"): "pi weak scaling",
    line(4, f"dispatch --experts 3 --top-k 1 {QUICK}"): "--experts 3 4 ranks",
    line(3, f"halo --rows 2 {QUICK}"): "3 ranks 3 x 1 --rows 2",
    line(4, f"halo --columns 1 {QUICK}"): "--columns 2 or more",
    line(3, f"dispatch --tokens 100 {QUICK} --binding pickle"): "pickle alltoallv",
    line(2, f"merge --rows 9 {QUICK} --binding pickle"): "alltoallv --exchange pairs",
    line(2, f"transpose_sum {QUICK} --binding pkl5 --exchange pairs"): "pkl5 irecv",
    line(2, f"halo --rows 9 --columns 9 {QUICK} --binding pkl5"): "pkl5 irecv",
    line(4, "kmeans --samples 3 --k-to 2"): "--samples",
    line(4, f"{KMEANS} --k-to 6 --divide k"): "3 k too few 4 ranks",
    line(2, "kmeans --k-from 3 --k-to 2"): "--k-from, --k-to",
    line(4, "knn --samples 19"): "--samples --neighbours",
    line(2, "knn --samples 4"): "--neighbours",
    line(3, f"{KMEANS} --binding pickle"): "--binding buffer",
    line(3, f"{TRAIN} --strategy hybrid --stages 2"): "multiple of 2 ranks",
    line(2, f"{TRAIN} --strategy model --overlap"): "--overlap is for --strategy data and hybrid",
    line(2, "train --model gpt2 --strategy model"): "only the parameters are known",
    line(2, "train --overlap --allreduce ring"): "leave out --overlap",
    line(2, "train --strategy model --allreduce ring"): "--allreduce is for --strategy data",
    line(2, "train --overlap --binding pickle"): "use --binding buffer",
    line(2, "train --layers 5001"): "use --layers 5000",
    line(2, "train -T bfloat16"): "cannot add bfloat16: choose another -T, or add --allreduce ring",
    line(2, "train -T bfloat16 --allreduce ring --binding native"): "cannot add bfloat16",
    line(2, "train -T bfloat16 --allreduce ring --binding tcp"): "binding tcp cannot add bfloat16",
    line(
        1, f"replay {DATA / 'every-routine.txt'} {QUICK}"
    ): "send another rank: 2 --leave-out send",
    line(2, f"{REPLAY} --binding pickle"): "binding pickle gatherv",
    line(2, f"replay {DATA / 'README.md'} {QUICK}"): "no profile omb-py mpitrace",
    line(2, f"{REPLAY} --leave-out alltoall"): "--leave-out alltoall: profile no calls",
    line(2, f"{REPLAY} --scaling weak"): "weak scaling",
    line(3, f"replay {DATA} {QUICK}"): "no profile",
}


@each_line(REFUSED)
def test_impossible_application_is_one_sentence(battery: Battery, line: Line) -> None:
    refused(battery(line), REFUSED[line])
