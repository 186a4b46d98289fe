"""A real Slurm of two nodes on one machine, in one folder, for tests.

From Python ``with cluster(folder) as environment``, and from a shell::

    eval "$(python tests/schedulers/slurm_cluster.py start FOLDER)"
    sbatch -N 2 job.sh
    python tests/schedulers/slurm_cluster.py stop FOLDER

Nothing of the system's own Slurm is used or changed: two slurmd with names and ports of their own,
a munged with its own key and socket, and ``SLURM_CONF`` in the environment in place of
``/etc/slurm``. It runs as whoever starts it; that need not be root.
"""

from __future__ import annotations

import argparse
import getpass
import os
import random
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

NODES = ("n1", "n2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "srun", "sbatch", "qsub")
DAEMONS = ("munged", "slurmctld", "slurmscriptd", "slurmd", "slurmstepd")
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
# The whole nodes go to one job, as on most machines that are measured. A job is killed at its
# walltime within 30 s (Slurm looks that often), and has KillWait seconds between TERM and KILL. A
# busy machine takes more than the usual minute to end a step, after which Slurm drains the node.
# pmi2 is how srun tells MPICH's ranks of each other.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
JobRequeue=0
KillWait=10
UnkillableStepTimeout=600
OverTimeLimit=0
MinJobAge=3600
MpiDefault=pmi2
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 State=UNKNOWN
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""


class ClusterError(Exception):
    """The cluster cannot be started or stopped; the text is one sentence."""


def missing_programs() -> list[str]:
    """Which of Slurm's and munge's programs are not installed."""
    path = environment_of(Path("slurm.conf"))["PATH"]
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def environment_of(configuration: Path) -> dict[str, str]:
    """The environment in which Slurm's commands speak to the cluster with this ``slurm.conf``."""
    inherited = {name: value for name, value in os.environ.items() if "SLURM" not in name}
    path = f"{inherited.get('PATH', os.defpath)}:{SYSTEM_FOLDERS}"
    return inherited | {"PATH": path, "SLURM_CONF": str(configuration)}


def start(folder: Path, seconds: float = 120) -> dict[str, str]:
    """Start a cluster in an empty or new folder and return the environment for its commands.

    Raises:
        ClusterError: a program is not installed, or the nodes are not idle after ``seconds``.
    """
    folder = folder.resolve()
    if missing := missing_programs():
        raise ClusterError(
            f"install slurm-wlm, slurm-wlm-torque and munge: there is no {', '.join(missing)}"
        )
    if folder.exists() and any(folder.iterdir()):
        raise ClusterError(f"{folder} is not empty: name a new folder")
    if any(character.isspace() for character in str(folder)):
        raise ClusterError(f"Slurm cannot be told a path with a blank in it: {str(folder)!r}")
    environment = environment_of(folder / "slurm.conf")
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder)
    try:
        _run_daemons(folder, environment)
        _wait_until_idle(environment, seconds)
    except BaseException:
        stop(folder)
        raise
    return environment


def stop(folder: Path) -> None:
    """End every process of the cluster in ``folder``, those of its jobs too, and remove the folder.

    Raises:
        ClusterError: there is no cluster in this folder, or a process cannot be ended.
    """
    folder = folder.resolve()
    configuration = folder / "slurm.conf"
    # another Slurm's folder, such as /etc/slurm, has no munge's socket in it
    ours = f"AuthInfo=socket={folder}/munge.socket"
    if not configuration.is_file() or ours not in configuration.read_text().splitlines():
        raise ClusterError(f"{folder} holds no cluster: name the folder that it was started in")
    deadline = time.monotonic() + 60
    while processes := _processes(configuration):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise ClusterError(f"processes {processes} of the cluster in {folder} do not end")
        time.sleep(0.05)
    shutil.rmtree(folder)


def is_test_cluster(environment: dict[str, str]) -> bool:
    """Whether a Slurm with the two nodes of such a cluster, and no other, answers."""
    return sorted(_node_states(environment)) == sorted(NODES)


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """A cluster for as long as the block lasts; the value is the environment for its commands."""
    with ExitStack() as stack:
        environment = start(folder)
        stack.callback(stop, folder)
        yield environment


def _write(folder: Path) -> None:
    for name in ("state", "log", *(f"spool/{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    text = CONFIGURATION.format(
        folder=folder, host=_host(), user=getpass.getuser(), ports=_free_ports(3)
    )
    (folder / "slurm.conf").write_text(text)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_ports(count: int) -> list[int]:
    """Ports below those that the system gives to whoever connects, lest one is taken meanwhile."""
    free: list[int] = []
    while len(free) < count:
        port = random.choice([port for port in range(10000, 30000) if port not in free])
        with socket.socket() as one, suppress(OSError):
            one.bind(("", port))
            free.append(port)
    return free


def _run_daemons(folder: Path, environment: dict[str, str]) -> None:
    # munged wants folders that everybody can enter, unless forced: one user needs no more than his
    munge = ["munged", "--force", f"--socket={folder}/munge.socket"]
    munge += [f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid"]
    munge += [f"--log-file={folder}/log/munged", f"--seed-file={folder}/munge.seed"]
    for command in (munge, ["slurmctld"], *(["slurmd", "-N", node] for node in NODES)):
        # a daemon keeps stdout open, so that a pipe would be waited for until its end
        with (folder / "log" / "start").open("a") as output:
            done = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=60,
                check=False,
            )
        if done.returncode != 0:
            said = (folder / "log" / "start").read_text().strip()
            raise ClusterError(f"{command[0]} does not start: {said}")


def _wait_until_idle(environment: dict[str, str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (states := _node_states(environment)) != dict.fromkeys(NODES, "idle"):
        if time.monotonic() > deadline:
            raise ClusterError(f"after {seconds:g} s the nodes are not idle but {states}")
        time.sleep(0.1)


def _node_states(environment: dict[str, str]) -> dict[str, str]:
    """What ``sinfo`` calls each node, such as ``idle``; nothing when no Slurm answers."""
    command = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=10, check=False
        )
    except subprocess.TimeoutExpired:
        return {}
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return dict(line.split(" ", 1) for line in lines)


def _processes(configuration: Path) -> list[int]:
    """The daemons of a cluster and the processes of its jobs, known by their environment."""
    ours = []
    for process in Path("/proc").glob("[0-9]*"):
        # a process that ends, or is somebody else's, cannot be read
        with suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if f"SLURM_CONF={configuration}".encode() not in variables:
                continue
            in_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables)
            if in_job or (process / "comm").read_text().strip() in DAEMONS:
                ours.append(int(process.name))
    return ours


def main(arguments: list[str]) -> int:
    """``start FOLDER`` prints lines for a shell to evaluate; ``stop FOLDER`` ends what it began."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.action == "stop":
            stop(chosen.folder)
        else:
            environment = start(chosen.folder)
            print(f"export SLURM_CONF={shlex.quote(environment['SLURM_CONF'])}")
    except ClusterError as error:
        print(f"slurm_cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
