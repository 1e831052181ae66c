"""`pyhudi completion`: a script for the shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.cli.options import COMMON, CommonOptions
from pyhudi.cli.reply import Reply
from pyhudi.result import Result

__all__ = ["CompletionScript", "completion"]


@dataclass(frozen=True, slots=True, repr=False)
class CompletionScript(Result):
    """`script`: its text."""

    script: str

    def __str__(self) -> str:
        return self.script


def completion(shell: Literal["bash", "zsh", "fish"], /, *, common: CommonOptions = COMMON) -> Reply:
    """A script that completes commands and their options: `eval "$(pyhudi completion bash)"`.

    Args:
        shell: bash, zsh or fish.
    """
    from pyhudi.cli.completion_scripts import script

    return Reply(CompletionScript(script(shell)))
