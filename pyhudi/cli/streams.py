"""The command of pipelines."""

from __future__ import annotations

import sys

from pyhudi.cli.options import Common
from pyhudi.cli.reply import Reply

__all__ = ["stream"]


def stream(common: Common, config: str, check: bool = False, until_empty: bool = False) -> Reply:
    """A line about each round on standard error, and the sum at the end. `--option` counts before the file, and
    `--spark` says which session works.
    """
    from pyhudi import Streamer
    from pyhudi.streamer.results import TablesFailed
    from pyhudi.streamer.settings import WithMore

    streamer = Streamer(
        WithMore(config, {**common.options, **common.settings["storage_options"]}), spark=common.session()
    )
    try:
        return Reply(streamer.check() if check else streamer.run(until_empty=until_empty, told=_say))
    except TablesFailed as error:
        return Reply(error.result)  # its tables say what happened to each; the exit code says that some failed
    finally:
        streamer.close()


def _say(line: str) -> None:
    print(f"pyhudi: {line}", file=sys.stderr, flush=True)
