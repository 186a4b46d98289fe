"""Each key of a configuration is documented once, beside the key; tables and schemas follow."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest
from pydantic import BaseModel

from docs import generate
from omb_py.sweeps import catalog
from omb_py.sweeps.config import Experiment, Sweep
from omb_py.sweeps.machine import JobSettings, Machine, Queue
from omb_py.sweeps.toml import key_lines
from tests.sweeps.job_scripts import shipped_names

MODELS = (Machine, JobSettings, Queue, Sweep, Experiment)


def fields() -> Iterator[Any]:
    """Every key of every table."""
    for model in MODELS:
        for name in model.model_fields:
            yield pytest.param(model, name, id=f"{model.__name__}.{name}")


@pytest.mark.parametrize(("model", "name"), list(fields()))
def test_key_has_a_meaning_and_a_right_example(model: type[BaseModel], name: str) -> None:
    field = model.model_fields[name]
    assert field.description, "write what it means below the key"
    assert field.description.endswith(".")
    if name in ("job", "experiments"):  # tables with keys of their own
        return
    assert field.examples
    (example,) = field.examples
    beside: dict[str, Any] = {"ranks_per_node": 1} if model is Experiment else {}
    beside |= {"benchmarks": "latency"} if model is Experiment else {"name": "x"}
    if name == "ranks":
        del beside["ranks_per_node"]
    if model in (JobSettings, Queue):
        beside = {}
    if name == "scheduler_commands":
        beside["scheduler"] = "pbs"
    if model is Sweep:
        beside["experiments"] = [{"benchmarks": "latency", "ranks": 2}]
    model.model_validate(beside | {name: example})


def test_examples_of_machine_files_are_toml() -> None:
    for model in generate.SECTIONS.values():
        for key in generate.keys(model):
            assert list(tomllib.loads(key.example)) == [key.name]


@pytest.mark.long
def test_every_key_of_a_machine_file_is_in_its_table() -> None:
    for section, model in generate.SECTIONS.items():
        listed = {key.name for key in generate.keys(model)}
        assert listed == set(model.model_fields) - {"job"}, section
        assert all(f"| `{name}` | " in generate.key_tables() for name in listed), section


@pytest.mark.slow
def test_document_shows_settings_for_each_scheduler() -> None:
    rows = dict(generate.by_scheduler())
    assert set(rows["job.walltime"][0]) == {"#PBS -l walltime=01:00:00"}
    assert rows["job.select"][3] == [], "Slurm has none"
    assert {f"job.{name}" for name in JobSettings.model_fields} - set(rows) == {
        *("job.account_required", "job.reserve", "job.directives", "job.queues"),
        *("job.chain", "job.max_jobs"),
    }


@pytest.mark.parametrize(
    ("model", "kind"), [(Machine, "machines"), (Sweep, "sweeps")], ids=["machine", "sweep"]
)
def test_the_shipped_schema_is_that_of_the_model(model: type[BaseModel], kind: str) -> None:
    text = catalog.schema(kind).read_text()
    shipped = json.loads(text)
    made = without_new_names(json.loads(generate.schema(model)), shipped)
    assert shipped == made, "it is stale: make keys"
    for pattern in re.findall(r'"pattern": "(.*)"', text):
        assert "\\\\z" not in pattern
        assert "\\\\x{" not in pattern


def without_new_names(made: Any, shipped: Any) -> Any:
    """A schema without names that were added since: editors learn them when make keys runs."""
    if isinstance(made, dict) and isinstance(shipped, dict):
        return {key: without_new_names(value, shipped.get(key)) for key, value in made.items()}
    if isinstance(made, list) and isinstance(shipped, list):
        if all(isinstance(item, str) for item in made):
            return [item for item in made if item in shipped]
        pairs = zip_longest(made, shipped)
        return [without_new_names(*pair) for pair in pairs if pair[0] is not None]
    return made


@pytest.mark.parametrize("kind", ["machines", "sweeps"])
def test_every_shipped_file_names_its_schema(kind: str) -> None:
    for name in shipped_names(kind):
        path = catalog.folder() / kind / f"{name}.toml"
        first = path.read_text().splitlines()[0]
        assert first.startswith(catalog.DIRECTIVE)
        named = path.parent / first.removeprefix(catalog.DIRECTIVE)
        assert named.resolve() == catalog.schema(kind).resolve()


def test_every_key_of_the_shipped_files_is_in_the_schema() -> None:
    known = json.loads(generate.schema(Machine))
    tables: dict[tuple[str | int, ...], Any] = {(): known} | {
        ("job",): known["definitions"]["JobSettings"]
    }
    for name in shipped_names("machines"):
        text = (catalog.folder() / "machines" / f"{name}.toml").read_text()
        for key, _ in key_lines(text):
            if key[:-1] in tables:
                assert key[-1] in tables[key[:-1]]["properties"]
