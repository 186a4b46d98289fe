"""A remote shell for virtual hosts: what ssh is on a cluster, without keys, users or encryption.

Like ssh, it joins the words of a command by spaces for the other host's shell, passes on neither
environment variables nor the current folder, hands over input, output and the exit code, and leaves
a command running when the connection is lost. It is for launchers: `rsh HOST COMMAND…`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading

PORT = 514
COMMAND_BYTES = 1 << 20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = ("HOME", "TMPDIR")
"""What a login on the other host would set by itself."""


def serve() -> None:
    """Run the commands of all who connect, for ever; says ``ready`` when they can."""
    with socket.create_server(("", PORT), backlog=64) as listener:
        print("ready", flush=True)
        sys.stdout.close()
        while True:
            control, _ = listener.accept()
            threading.Thread(target=_execute, args=(control,), daemon=True).start()


def _execute(control: socket.socket) -> None:
    """One command: its streams are connections of their own, its exit code ends the first."""
    with control, socket.create_server(("", 0)) as listener:
        control.sendall(f"{listener.getsockname()[1]}\n".encode())
        streams = [listener.accept()[0] for _ in range(3)]
        with control.makefile("r") as lines:
            command = lines.readline(COMMAND_BYTES).rstrip("\n")
        environment = {"PATH": PATH, **{name: os.environ[name] for name in KEPT}}
        process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=streams[0].fileno(),
            stdout=streams[1].fileno(),
            stderr=streams[2].fileno(),
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        for stream in streams:
            stream.close()
        code = process.wait()
        with contextlib.suppress(OSError):  # nobody waits for it any more
            control.sendall(f"{code if code >= 0 else 128 - code}\n".encode())


def connect(host: str, command: str) -> int:
    """Run ``command`` on ``host`` with this process's streams; its exit code."""
    control = socket.create_connection((host, PORT))
    answer = control.makefile("r")
    port = int(answer.readline())
    streams = [socket.create_connection((host, port)) for _ in range(3)]
    control.sendall(command.replace("\n", " ").encode() + b"\n")
    threading.Thread(target=_send, args=(0, streams[0]), daemon=True).start()
    _receive({streams[1]: 1, streams[2]: 2})
    return int(answer.readline() or "255")


def _send(descriptor: int, stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(descriptor, 65536):
            stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)


def _receive(streams: dict[socket.socket, int]) -> None:
    """Write what arrives to the descriptors of ``streams``, until all are closed."""
    with selectors.DefaultSelector() as selector:
        for stream, descriptor in streams.items():
            selector.register(stream, selectors.EVENT_READ, descriptor)
        while selector.get_map():
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(65536)
                if not data:
                    selector.unregister(key.fileobj)
                while data:
                    data = data[os.write(key.data, data) :]


def main(arguments: list[str]) -> int:
    """``serve``, or ``[-OPTION…] HOST COMMAND…``."""
    if arguments == ["serve"]:
        serve()
    words = list(arguments)
    while words and words[0].startswith("-"):  # hydra says -x to ssh
        words.pop(0)
    host, *command = words
    try:
        return connect(host, " ".join(command))
    except OSError as error:
        print(f"rsh: {host}: {error}", file=sys.stderr)
        return 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
