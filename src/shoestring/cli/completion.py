"""``completion``: the script that lets a shell complete commands, options and the names of studies."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

HOW = {
    "bash": 'eval "$(shoestring completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(shoestring completion zsh)"       # in ~/.zshrc',
    "fish": "shoestring completion fish > ~/.config/fish/completions/shoestring.fish",
}


@click.command(short_help="Completion for your shell.", epilog="\b\n" + "\n".join(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names of studies. Put one of these where your shell starts:"""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "shoestring", "_SHOESTRING_COMPLETE")
    click.echo(script.source_template % script.source_vars())  # source() would first run the shell, to ask for its version
