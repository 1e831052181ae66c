"""The checksum in `hoodie.properties`: it hashes the table's name only.

Source: docs/formats/table-config.md, "Checksum".
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

__all__ = ["CHECKSUM_KEY", "has_valid_checksum", "table_checksum"]

CHECKSUM_KEY = "hoodie.table.checksum"


def table_checksum(properties: Mapping[str, str]) -> str:
    """What the checksum must be: CRC-32 of `<database>.<table>` in decimal; no database gives `.<table>`."""
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return str(zlib.crc32(name.encode("utf-8", "replace")))  # half a surrogate pair is "?", as in Java


def has_valid_checksum(properties: Mapping[str, str]) -> bool:
    """True when the checksum is there and right."""
    return properties.get(CHECKSUM_KEY) == table_checksum(properties)
