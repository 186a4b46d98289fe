"""Each key of a configuration is documented; the tables of a machine's follow from the code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from docs import generate
from omb_py.sweeps.config import Experiment, Sweep
from omb_py.sweeps.machine import JobSettings, Machine, Queue
from tests import ROOT

MODELS = (Machine, JobSettings, Queue)


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
    if name == "job":  # a table with keys of its own
        return
    assert field.examples
    (example,) = field.examples
    beside = {"name": "x"} if model is Machine else {}
    if name == "scheduler_commands":
        beside["scheduler"] = "pbs"
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


def test_every_key_of_a_sweep_is_on_its_page() -> None:
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    for model in (Sweep, Experiment):
        for name in model.model_fields:
            assert re.search(rf"(`|^\[*|; ){name}(`| = |\]\])", text, re.MULTILINE), name
