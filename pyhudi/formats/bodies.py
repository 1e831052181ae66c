"""Types of what bodies hold: decoded, and not known to Python's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["AvroObject", "AvroType", "Body", "NewBody"]

# A record that was decoded: Avro's schema, or the code that reads the JSON, says what its fields hold.
Body: TypeAlias = Mapping[str, Any]
# A record to encode: whatever it holds, the schema that it is encoded with decides whether it fits.
NewBody: TypeAlias = dict[str, object]
# A type in an Avro schema's JSON: a name, a union, or an object.
AvroObject: TypeAlias = dict[str, Any]
AvroType: TypeAlias = "str | list[AvroType] | AvroObject"
