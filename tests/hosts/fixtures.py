"""Virtual hosts for tests, which skip where none can be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import ENVIRONMENT
from tests.helpers.battery import Battery, lines_of
from tests.hosts.jobs import launcher
from tests.hosts.network import Link
from tests.hosts.virtual_hosts import CannotMakeHostsError, Hosts, check, virtual_hosts

FAR = Link(delay=1e-3, loss=0.005)


@pytest.fixture(scope="session")
def can_make_hosts() -> None:
    """Skip where no hosts can be made, and say why."""
    try:
        check()
        with virtual_hosts(1, FAR):
            pass
    except CannotMakeHostsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def near(can_make_hosts: None) -> Iterator[Hosts]:
    """Three hosts on a network without delay and loss."""
    with virtual_hosts(3) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def far(can_make_hosts: None) -> Iterator[Hosts]:
    """Three hosts whose packets take a millisecond, and of which one in 200 is lost."""
    with virtual_hosts(3, FAR) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def far_battery(
    request: pytest.FixtureRequest, far: Hosts, tmp_path_factory: pytest.TempPathFactory
) -> Battery:
    """``far_battery(line)`` is what came of a command line, on two ranks of each host."""
    folder = tmp_path_factory.mktemp("battery")

    def start(ranks: int, program: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        per_host = 1 if ranks < 2 * len(far.hosts) else 2
        command = [*launcher(ranks, per_host, ("PYTHONPATH",)), *program]
        return far.first.inside(command, folder), ENVIRONMENT | far.environment

    return Battery(lines_of(request, "far_battery"), folder, start)
