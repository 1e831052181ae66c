"""Compactions of metadata tables that patch base files, however small these are."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.formats.hfile import patching
from pyhudi.formats.hfile.patching import HFilePatch
from pyhudi.metadata import group_files

__all__ = ["noted_patches", "patch_always"]


def patch_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch base files of any size, however much of them has changed."""
    monkeypatch.setattr(patching, "_CHANGED_SHARE", 1e6)
    monkeypatch.setattr(group_files, "_FEW_LOG_SHARE", 1e6)


def noted_patches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The same; what was patched, by the old files' paths."""
    patch_always(monkeypatch)
    found: list[str] = []
    write = HFilePatch.write

    def noted(self: HFilePatch, sink: Any) -> tuple[int, int]:
        found.append(self.reader.where)
        return write(self, sink)

    monkeypatch.setattr(HFilePatch, "write", noted)
    return found
