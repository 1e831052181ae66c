"""Files as the data of a write: `RowFiles` is passed instead of a frame."""

from __future__ import annotations

from pyhudi.table.row_files.files import RowFiles

__all__ = ["RowFiles"]
