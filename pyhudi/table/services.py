"""The table services of HudiTable: what keeps a table small and fast. Each call opens the table as it is then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyhudi.model.options.services import LAYOUT, SORT_COLUMNS
from pyhudi.services.archive.archiving import ArchiveResult, archive
from pyhudi.services.clean.cleaning import clean
from pyhudi.services.clean.runs import CleanResult
from pyhudi.services.cluster.calls import cluster
from pyhudi.services.compact.compaction import COMPACTION, LOG_COMPACTION, call
from pyhudi.services.results import ClusteringResult, CompactionResult
from pyhudi.table.calls import Options, TableCalls

__all__ = ["TableServices"]


class TableServices(TableCalls):
    """compact, log_compact, clean, archive, cluster."""

    def compact(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: object,
    ) -> CompactionResult:
        """Merge-on-read: merge log files into base files. Plans that wait are executed first.

        Args:
            dry_run: only say what would be compacted. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys; whatever log files there are is compacted, unless they name a trigger to wait for.
        Raises: UnsupportedTable for a copy-on-write table, WriteConflict when another process is at it.
        """
        run = partial(call, COMPACTION, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._serve(run, options, more, dry_run=dry_run)

    def log_compact(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: object,
    ) -> CompactionResult:
        """Merge-on-read: merge the log blocks of slices with many of them; base files stay. See `compact`."""
        run = partial(call, LOG_COMPACTION, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._serve(run, options, more, dry_run=dry_run)

    def clean(
        self,
        *,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: object,
    ) -> CleanResult:
        """Delete files that no allowed query needs: older versions of files, and what overwrites have replaced.

        Writes do it by themselves. What queries are allowed is the policy's to say (`hoodie.clean.policy`), and stays
        with the newest rows and savepoints in any case. Cleans that wait are executed first.

        Args:
            dry_run: only say which files would go, and why. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending clean.
            options: Hudi's own keys; without a trigger among them whatever there is to clean is cleaned.
        """
        run = partial(clean, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        return self._serve(run, options, more, dry_run=dry_run)

    def archive(self, *, dry_run: bool = False, options: Options | None = None, **more: object) -> ArchiveResult:
        """Move old instants from the active timeline to the history, where `history` still finds them.

        Writes do it by themselves. Nothing goes that a reader, a savepoint, pending work or cleaning still needs.

        Args:    dry_run: only say which instants would go, and what keeps the others.
                 options: Hudi's own keys: how many commits stay (`hoodie.keep.min.commits`, `hoodie.keep.max.commits`).
        """
        return self._serve(partial(archive, dry_run=dry_run), options, more, dry_run=dry_run)

    def cluster(
        self,
        *,
        sort_columns: str | Sequence[str] | None = None,
        layout: str | None = None,
        dry_run: bool = False,
        schedule_only: bool = False,
        instant_time: str | None = None,
        options: Options | None = None,
        **more: object,
    ) -> ClusteringResult:
        """Rewrite small file groups as larger ones, with rows in the order that options ask for. Plans that wait are
        executed first.

        Args:
            sort_columns: sort rows by these. layout: LINEAR (by one column after the other), ZORDER or HILBERT.
            dry_run: only say what would be rewritten. schedule_only: leave the plan for another run or process.
            instant_time: execute just this pending plan.
            options: Hudi's own keys, such as `hoodie.clustering.plan.strategy.class`.
        Raises: WriteConflict when another process is at it, or has written to a file group of the plan meanwhile.
        """
        run = partial(cluster, dry_run=dry_run, schedule_only=schedule_only, instant_time=instant_time)
        order = {SORT_COLUMNS: sort_columns, LAYOUT: layout}
        more |= {key: value for key, value in order.items() if value is not None}
        return self._serve(run, options, more, dry_run=dry_run)
