"""Mergers of the user: the one of `examples/order_events.py`, and its rule a row at a time."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

from pyhudi.merge.custom import RowMerger
from tests.support.source import ROOT


def example(name: str) -> types.ModuleType:
    """A file of `examples/` as a module that mergers can be named in."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class NewestParts(RowMerger):
    """The rule of the example, a row at a time."""

    strategy_id = "0d3f2c44-90f1-4f1f-8c7e-55b1b7a1c001"

    def merge(self, older: dict[str, Any] | None, newer: dict[str, Any] | None, context: Any) -> dict[str, Any] | None:
        assert older is not None
        assert newer is not None
        base = newer if newer["seq"] >= older["seq"] else older
        result = dict(base)
        for part in ("order", "payment"):
            number = f"{part}_seq"
            sides = [side for side in (older, newer) if side[number] is not None]
            if sides:
                latest = max(enumerate(sides), key=lambda pair: (pair[1][number], pair[0]))[1]
                result |= {number: latest[number], f"{part}_info": latest[f"{part}_info"]}
        return result


SCHEMA = example("order_events").SCHEMA
