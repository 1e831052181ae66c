"""The quarantine table: items of a source that don't fit the table, with their positions and reasons.

It is an ordinary Hudi table, upserted before the batch is written. The key is a digest of the pipeline's table, the
position and the text: a batch that is read again after a crash sets the same rows aside once, and the lines of a
rewritten file, or the messages of a recreated topic, replace none. Several pipelines may share a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import xxhash

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage import open_storage
from pyhudi.streamer.places import place_of
from pyhudi.streamer.settings import PipelineSettings
from pyhudi.streamer.sources.source import Rejected
from pyhudi.table.save import write

__all__ = ["check_share", "set_aside"]

_COLUMNS = pa.schema([(name, pa.string()) for name in ("id", "target", "position", "source", "text", "reason")])


def check_share(settings: PipelineSettings, rejected: Sequence[Rejected], rows: int) -> None:
    """Raise SchemaMismatch if rows don't fit, and the options don't allow to set them, or so many, aside."""
    options = settings.options
    if not rejected:
        return
    first = rejected[0]
    count = f"{len(rejected):,} of {len(rejected) + rows:,} rows don't fit the table"
    example = f"the first is {first.position}: {first.reason}"
    if not (options.quarantine.is_on or options.commit_on_errors):
        raise SchemaMismatch(
            f"{count}; {example}. Nothing was written. Correct the source, or set such rows aside by "
            "hoodie.errortable.enable=true and hoodie.errortable.base.path."
        )
    share = len(rejected) / (len(rejected) + rows)
    if share > options.quarantine.max_share:
        raise SchemaMismatch(
            f"{count}, a share of {share:.0%}, where hoodie.pyhudi.streamer.quarantine.max.share allows "
            f"{options.quarantine.max_share:.0%}; {example}. Nothing was written."
        )


def set_aside(settings: PipelineSettings, rejected: Sequence[Rejected]) -> None:
    """Write rejected rows to the quarantine table, if there is one. Raises ConfigError without a path for it."""
    quarantine = settings.options.quarantine
    if not quarantine.is_on or not rejected:
        return
    if quarantine.path is None:
        raise ConfigError(f"{settings.place}: hoodie.errortable.base.path is missing: the path of that table.")
    target = place_of(settings.target)
    columns = [
        _ids(target, rejected),
        [target] * len(rejected),
        [one.position for one in rejected],
        [settings.options.source] * len(rejected),
        [one.text for one in rejected],
        [one.reason for one in rejected],
    ]
    storage = open_storage(quarantine.path, settings.store)
    options = {
        "hoodie.table.name": quarantine.table or storage.root.rstrip("/").rpartition("/")[2],
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "upsert",
    }
    write(storage, pa.table(columns, schema=_COLUMNS), options, "append", None)


def _ids(target: str, rejected: Sequence[Rejected]) -> list[str]:
    """A key for each, the same when the batch is read again. Equal rows of one position are numbered."""
    numbers: Counter[tuple[str, str]] = Counter()
    ids = []
    for one in rejected:
        place = (one.position, one.text)
        parts = "".join(f"{len(part)}:{part}" for part in (target, *place, str(numbers[place])))
        ids.append(xxhash.xxh3_128_hexdigest(parts.encode("utf-8", "replace")))
        numbers[place] += 1
    return ids
