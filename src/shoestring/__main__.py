"""Entry point of ``python -m shoestring``, which is the same as the ``shoestring`` command."""

from __future__ import annotations

from .cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m shoestring")
