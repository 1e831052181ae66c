"""The fields of decoded bodies, Avro or JSON, with checked types, and Python types for bodies and Avro schemas.

Any writer may have written a body: Avro's header contains the writer's schema, and JSON has none. So `Fields` checks
each field: it has the requested type, or the file is damaged. Numbers are Java's longs. A null or absent field counts
as empty.

The types `Body`, `NewBody` and `AvroType` stand for contents that Python's types can't describe.

Source: docs/formats/timeline.md, "Bodies", "Records".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pyhudi.errors import CorruptFile

__all__ = ["LONG_MAX", "AvroObject", "AvroType", "Body", "Fields", "NewBody", "fields_of", "shown", "text_of"]


# A decoded record: Avro's schema, or the code that reads the JSON, defines its fields.
Body: TypeAlias = Mapping[str, Any]
# A record to encode: the schema decides whether its content fits.
NewBody: TypeAlias = dict[str, object]
# A type in an Avro schema's JSON: a name, a union, or an object.
AvroObject: TypeAlias = dict[str, Any]
AvroType: TypeAlias = "str | list[AvroType] | AvroObject"


LONG_MAX = 2**63 - 1  # Java's long, which holds every number of a body

Kind = TypeVar("Kind")


def fields_of(value: object, where: str) -> Fields:
    """Return the fields of a record or of a JSON object. Raises CorruptFile for anything else."""
    if not isinstance(value, Mapping):
        raise CorruptFile(f"{where}: expected a record, found {shown(value)}. {_ADVICE}")
    return Fields(value, where)


def text_of(value: object, where: str) -> str:
    """Return a text. Raises CorruptFile for anything else."""
    if not isinstance(value, str):
        raise CorruptFile(f"{where}: expected text, found {shown(value)}. {_ADVICE}")
    return value


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one record. `where`: the file, for messages. Every method raises CorruptFile for other types."""

    body: Body
    where: str

    def text(self, name: str) -> str:
        """Return a text; "" if absent."""
        return self._value_of(name, str, "text") or ""

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None."""
        return self._value_of(name, str, "text")

    def number(self, name: str) -> int:
        """Return a whole number; 0 if absent."""
        number = self._value_of(name, int, "a whole number") or 0
        if not -LONG_MAX - 1 <= number <= LONG_MAX:
            raise self._wrong(name, "a number of 64 bits")
        return number

    def flag(self, name: str) -> bool | None:
        """True or false, or None."""
        return self._value_of(name, bool, "true or false")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        listed = self._list(name)
        texts = tuple(text for text in listed if isinstance(text, str))
        if len(texts) < len(listed):
            raise self._wrong(name, "a list of texts")
        return texts

    def text_map(self, name: str) -> dict[str, str]:
        """Return the entries of a map with text values; others are ignored."""
        return {key: value for key, value in self._map(name).items() if isinstance(value, str)}

    def number_map(self, name: str) -> dict[str, float]:
        """Return a map of numbers."""
        entries = self._map(name)
        numbers = {key: n for key, n in entries.items() if isinstance(n, (int, float))}
        if len(numbers) < len(entries) or any(isinstance(n, int) and abs(n) > LONG_MAX for n in numbers.values()):
            raise self._wrong(name, "a map of numbers of 64 bits")
        return numbers

    def record(self, name: str) -> Fields | None:
        """Return a record, or None."""
        value = self.body.get(name)
        return None if value is None else fields_of(value, self.where)

    def records(self, name: str) -> Iterator[Fields]:
        """Return a list of records, without nulls."""
        return (fields_of(record, self.where) for record in self._list(name) if record is not None)

    def record_map(self, name: str) -> Iterator[tuple[str, Fields]]:
        """Return the entries of a map of records."""
        return ((key, fields_of(record, self.where)) for key, record in self._map(name).items())

    def list_map(self, name: str) -> Iterator[tuple[str, Sequence[object]]]:
        """Yield the entries of a map of lists."""
        for key, items in self._map(name).items():
            if not isinstance(items, list):
                raise self._wrong(name, "a map of lists")
            yield key, items

    def _list(self, name: str) -> Sequence[object]:
        return self._value_of(name, list, "a list") or []

    def _map(self, name: str) -> Mapping[str, object]:
        return self._value_of(name, dict, "a map") or {}

    def _value_of(self, name: str, kind: type[Kind], expected: str) -> Kind | None:
        value = self.body.get(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._wrong(name, expected)
        return value

    def _wrong(self, name: str, expected: str) -> CorruptFile:
        return CorruptFile(
            f"{self.where}: expected {expected} under {name!r:.100}, found {shown(self.body.get(name))}. {_ADVICE}"
        )


_ADVICE = "The file is damaged; restore it, or roll the instant back."


def shown(value: object) -> str:
    """Return a value for messages: it may be huge, nested too deep to be printed, or have too many digits."""
    return f"{value!r:.100}" if isinstance(value, str) else type(value).__name__
