"""`pyhudi completion`: a script that completes the words of `pyhudi` in a shell.

Its text is generated from the rows, so that the shell need not start Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.cli.command import Command
from pyhudi.cli.commands import COMMANDS
from pyhudi.cli.options import COMMON_ARGUMENTS, Common
from pyhudi.cli.reply import Reply
from pyhudi.result import Result

__all__ = ["CompletionScript", "completion"]


@dataclass(frozen=True, slots=True, repr=False)
class CompletionScript(Result):
    """`script`: its text."""

    script: str

    def __str__(self) -> str:
        return self.script


def completion(common: Common, shell: Literal["bash", "zsh", "fish"]) -> Reply:
    """The script."""
    return Reply(CompletionScript(_fish() if shell == "fish" else (_ZSH if shell == "zsh" else "") + _bash()))


_BASH = """# bash completion of pyhudi
_pyhudi() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="${{COMP_WORDS[*]:1:COMP_CWORD-1}}" choices
  case "$words" in
{cases}
  esac
  if [[ "$word" == -* || -n "$choices" && ! -e "$word" ]]; then COMPREPLY=($(compgen -W "$choices" -- "$word")); fi
  if [[ ${{#COMPREPLY[@]}} -eq 0 ]]; then COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _pyhudi pyhudi
"""

_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def _options(command: Command) -> list[str]:
    arguments = (*command.arguments, *COMMON_ARGUMENTS)
    return [name for one in arguments for name in one.names if name.startswith("--")]


def _following() -> dict[str, list[str]]:
    """The words that may follow other words: "", each group, and `locks audit`."""
    following: dict[str, list[str]] = {}
    for command in COMMANDS:
        words = command.words.split()
        for place, word in enumerate(words):
            after = following.setdefault(" ".join(words[:place]), [])
            if word not in after:
                after.append(word)
    return following


def _bash() -> str:
    lines = [f'    "{words}") choices="{" ".join(following)}" ;;' for words, following in _following().items()]
    lines += [
        f'    "{command.words}"*) choices="{" ".join(_options(command))}" ;;'
        for command in sorted(COMMANDS, key=lambda one: -len(one.words))
    ]
    return _BASH.format(cases="\n".join(lines))


def _fish() -> str:
    lines = ["# fish completion of pyhudi"]
    about = {command.words: command.summary.replace("'", "") for command in COMMANDS}
    for before, words in _following().items():
        conditions = [f"__fish_seen_subcommand_from {word}" for word in before.split()]
        conditions.append(f"not __fish_seen_subcommand_from {' '.join(words)}")
        for word in words:
            text = about.get(f"{before} {word}".strip(), "")
            lines.append(f"complete -c pyhudi -f -n '{'; and '.join(conditions)}' -a {word} -d '{text}'")
    for command in COMMANDS:
        words_seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words.split())
        lines += [f"complete -c pyhudi -n '{words_seen}' -l {name[2:]}" for name in _options(command)]
    return "\n".join(lines)
