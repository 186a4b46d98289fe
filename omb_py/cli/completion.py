"""``omb-py completion SHELL``: the script, click's, by which a shell completes omb-py."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from omb_py.cli import COMPLETION, debug_option


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@debug_option
def command(shell: str) -> None:
    """Print the script by which a shell completes omb-py.

    bash: eval "$(omb-py completion bash)" in ~/.bashrc

    zsh: eval "$(omb-py completion zsh)" in ~/.zshrc, after compinit

    fish: omb-py completion fish > ~/.config/fish/completions/omb-py.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click has had these three since version 8"
    group = click.Group("omb-py")
    click.echo(kind(group, {}, "omb-py", COMPLETION).source())
