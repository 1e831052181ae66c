"""`pyhudi completion`: a script that completes the words of `pyhudi` in a shell.

Its text is made from the registry, so that a shell starts no Python for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyhudi.cli.options import COMMON, CommonOptions
from pyhudi.cli.parsing import arguments_of
from pyhudi.cli.registry import COMMANDS, Command
from pyhudi.cli.reply import Reply
from pyhudi.result import Result

__all__ = ["CompletionScript", "completion", "script"]


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
    from pyhudi.cli.completion import script

    return Reply(CompletionScript(script(shell)))


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


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    if shell == "fish":
        return _fish()
    return (_ZSH if shell == "zsh" else "") + _bash()


def _options(command: Command) -> list[str]:
    return [
        name for argument in arguments_of(command) if argument.show for name in argument.names if name.startswith("--")
    ]


def _first_words() -> dict[str, list[str]]:
    """What may follow the words that stand there: "" and each group."""
    words: dict[str, list[str]] = {"": []}
    for command in COMMANDS:
        first, _, second = command.words.partition(" ")
        if first not in words[""]:
            words[""].append(first)
        if second:
            words.setdefault(first, []).append(second)
    return words


def _bash() -> str:
    lines = [f'    "{words}") choices="{" ".join(following)}" ;;' for words, following in _first_words().items()]
    lines += [
        f'    "{command.words}"*) choices="{" ".join(_options(command))}" ;;'
        for command in sorted(COMMANDS, key=lambda one: -len(one.words))
    ]
    return _BASH.format(cases="\n".join(lines))


def _fish() -> str:
    lines = ["# fish completion of pyhudi"]
    words = _first_words()
    firsts = " ".join(words[""])
    about = {command.words: command.summary for command in COMMANDS}
    for first in words[""]:
        text = about.get(first, "").replace("'", "")
        lines.append(f"complete -c pyhudi -f -n 'not __fish_seen_subcommand_from {firsts}' -a {first} -d '{text}'")
    for group, seconds in words.items():
        if not group:
            continue
        for second in seconds:
            text = about[f"{group} {second}"].replace("'", "")
            seen = f"__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from {' '.join(seconds)}"
            lines.append(f"complete -c pyhudi -f -n '{seen}' -a {second} -d '{text}'")
    for command in COMMANDS:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words.split())
        lines += [f"complete -c pyhudi -n '{seen}' -l {name[2:]}" for name in _options(command)]
    return "\n".join(lines)
