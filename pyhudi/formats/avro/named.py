"""Named Avro types (records, enums, fixed) of one schema, so that later references by name resolve.

Source: Avro specification 1.11, "Names".
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.errors import CorruptFile
from pyhudi.formats.bodies import AvroObject, AvroType

__all__ = ["NamedTypes"]


@dataclass(frozen=True, slots=True)
class NamedTypes:
    """Types by full name, shared by all scopes of a schema, and the namespace that short names of this scope have."""

    known: dict[str, AvroType]
    namespace: str

    def define(self, avro: AvroObject) -> NamedTypes:
        """Remember a named type; the scope inside it."""
        name = str(avro["name"])
        full = name if "." in name else ".".join(part for part in (avro.get("namespace", self.namespace), name) if part)
        self.known[full] = avro
        return NamedTypes(self.known, full.rpartition(".")[0])

    def find(self, name: str) -> AvroType:
        """The definition behind a name; CorruptFile when the schema has none."""
        found = self.known.get(name) or self.known.get(f"{self.namespace}.{name}")
        if found is None:
            raise CorruptFile(f"Avro schema: unknown type {name!r}.")
        return found
