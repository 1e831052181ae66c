"""What PyHudi asks of a session's configuration."""

from __future__ import annotations

from typing import Any

__all__ = ["hudi_options"]

_PREFIX = "spark."


def hudi_options(spark: Any) -> dict[str, str]:
    """Session-wide Hudi options: `spark.hoodie.*` without the `spark.` in front."""
    return {key[len(_PREFIX) :]: text for key, text in spark.conf.getAll.items() if key.startswith("spark.hoodie.")}
