"""The declaration of options: a field of a topic's frozen dataclass has the key and its documentation.

`commits_retained: int = option("hoodie.clean.commits.retained", 10, "…", minimum=1)` is the only declaration of this
option. Its row of the option table (`specs_of`), hence the page, the checks and the Python name, and the value of a
call (`parse`) are derived from it. docs/contributing/add-an-option.md walks through an example.

A user's lock provider or index declares its options in the same way: the attribute `options_class` of its class is a
frozen dataclass whose fields are made by `option`. Calls that name the class then know these keys: they are checked,
have defaults and older spellings, and the error for a wrong key names the nearest.
docs/contributing/add-a-lock-provider.md and docs/contributing/add-an-index.md walk through examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from pyhudi.errors import ConfigError
from pyhudi.model.options.spec import Kind, OptionScope, OptionSpec
from pyhudi.registry import Registry

if TYPE_CHECKING:
    from typing import Unpack

    from _typeshed import DataclassInstance

__all__ = [
    "Values",
    "computed",
    "is_own_class",
    "key_of",
    "milliseconds",
    "names_of",
    "option",
    "own_options",
    "own_rows",
    "own_specs",
    "own_texts",
    "parse",
    "part",
    "row",
    "specs_of",
    "topic",
]

T = TypeVar("T")
Options = TypeVar("Options", bound="DataclassInstance")

_DECLARED = "pyhudi option"  # in the metadata of a field


@dataclass(frozen=True, slots=True)
class Values:
    """The options of a call: canonical key → text, from `resolve`."""

    texts: Mapping[str, str]

    def is_given(self, *keys: str) -> bool:
        """True if one of these options is set."""
        return any(key in self.texts for key in keys)

    def text(self, spec: OptionSpec) -> str | None:
        """The call's text, else the default, else None."""
        return self.texts.get(spec.key) or spec.default

    def flag(self, spec: OptionSpec) -> bool:
        return self.text(spec) == "true"

    def integer(self, spec: OptionSpec) -> int:
        """The value as an integer. Raises ConfigError below the minimum."""
        text = self.text(spec)
        assert text is not None, f"{spec.key} has no default"
        return _checked_integer(spec, text)


class _Details(TypedDict, total=False):
    """Further properties of an option, see OptionSpec."""

    minimum: int
    aliases: tuple[str, ...]
    choices: tuple[str, ...]
    later: tuple[str, ...]
    scopes: frozenset[OptionScope]
    keyword: str
    may_be_empty: bool
    secret: bool


@dataclass(frozen=True, slots=True)
class _Own:
    """A field with the value of the option `spec`; `also`: further options that the topic uses for the same field."""

    spec: OptionSpec
    also: tuple[OptionSpec, ...]
    convert: Callable[[str], object] | None

    def read(self, text: str) -> object:
        value = _typed(self.spec, text)
        return self.convert(text) if self.convert else value


@dataclass(frozen=True, slots=True)
class _Computed:
    """A field that the topic's function computes from several options."""

    specs: tuple[OptionSpec, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A field that holds options of another class."""

    kind: type[DataclassInstance]
    parse: Callable[[Values], object]


def row(
    key: str,
    default: object,
    doc: str,
    kind: Kind | None = None,
    default_text: str | None = None,
    **details: Unpack[_Details],
) -> OptionSpec:
    """Declare an option without a field. The arguments are those of `option`."""
    text = _default_text(default) if default_text is None else default_text
    return OptionSpec(key, kind or _kind_of(default), text or None, doc, **details)


def option(
    key: str,
    default: T,
    doc: str,
    kind: Kind | None = None,
    default_text: str | None = None,
    convert: Callable[[str], T] | None = None,
    also: tuple[OptionSpec, ...] = (),
    **details: Unpack[_Details],
) -> T:
    """Declare a field of a frozen dataclass that holds the value of an option.

    Args:    key: Hudi's newest spelling. doc: its effect, in a line of docs/options.md.
             kind: needed if the default doesn't show it (None).
             default_text: the default shown in the table, if it is not the field's; "" for none.
             convert: converts the text to the field's value, if the kind is not sufficient.
             also: options from which the topic's function also fills the field.
    """
    spec = row(key, default, doc, kind, default_text, **details)
    declared = {_DECLARED: _Own(spec, also, convert)}
    if isinstance(default, dict):  # a dataclass takes no mutable default
        return field(default_factory=lambda: cast("T", {}), metadata=declared, repr=not spec.secret)
    return field(default=default, metadata=declared, repr=not spec.secret)


def milliseconds(key: str, default_s: float, doc: str, **details: Unpack[_Details]) -> float:
    """Declare a field in seconds whose option counts milliseconds."""
    text = str(int(default_s * 1000))
    return option(key, default_s, doc, Kind.INTEGER, text, lambda number: int(number) / 1000, **details)


def computed(default: Callable[[], T], *specs: OptionSpec) -> T:
    """Declare a field that the topic's function fills from the options `specs`."""
    return field(default_factory=default, metadata={_DECLARED: _Computed(specs)})


def part(kind: type[Options], parsed: Callable[[Values], Options] | None = None) -> Options:
    """Declare a field that holds options of the class `kind`. `parsed`: its topic's function, if it has one."""
    by = parsed or (lambda values: parse(kind, values))
    return field(default_factory=kind, metadata={_DECLARED: _Part(kind, by)})


def parse(kind: type[Options], values: Values) -> Options:
    """Read options of the class `kind` from text: its own options if set, and its parts.

    All other fields keep their defaults; the topic's function fills them.
    """
    fields: dict[str, object] = {}
    for name, how in _declared(kind):
        if isinstance(how, _Own):
            text = values.texts.get(how.spec.key)
            if text:
                fields[name] = how.read(text)
        elif isinstance(how, _Part):
            fields[name] = how.parse(values)
    return cast("Callable[..., Options]", kind)(**fields)


def specs_of(kind: type[DataclassInstance]) -> Iterator[OptionSpec]:
    """The options that a class declares, including those of its parts, in the order of its fields."""
    for _, how in _declared(kind):
        if isinstance(how, _Own):
            yield from (how.spec, *how.also)
        elif isinstance(how, _Computed):
            yield from how.specs
        else:
            yield from specs_of(how.kind)


def own_specs(kind: type[DataclassInstance]) -> dict[str, OptionSpec]:
    """Field → its option, for fields that have one."""
    return {name: how.spec for name, how in _declared(kind) if isinstance(how, _Own)}


def key_of(kind: type[DataclassInstance], name: str) -> str:
    """The key of the option of the field `name`."""
    return own_specs(kind)[name].key


def topic(group: str, *declared: type[DataclassInstance] | OptionSpec) -> tuple[OptionSpec, ...]:
    """The rows under one heading of the page: those of classes, and options without a field."""
    rows = (spec for each in declared for spec in ((each,) if isinstance(each, OptionSpec) else specs_of(each)))
    return tuple(replace(spec, group=group) for spec in rows)


@cache  # a write calls it some thirty times
def _declared(kind: type[DataclassInstance]) -> tuple[tuple[str, _Own | _Computed | _Part], ...]:
    """The fields declared with this module, by name."""
    return tuple((each.name, each.metadata[_DECLARED]) for each in fields(kind) if _DECLARED in each.metadata)


def names_of(text: str) -> tuple[str, ...]:
    """Split a text at its commas into names."""
    return tuple(part for part in text.split(",") if part)


def _typed(spec: OptionSpec, text: str) -> object:
    if spec.kind is Kind.FLAG:
        return text == "true"
    if spec.kind is Kind.INTEGER:
        return _checked_integer(spec, text)
    if spec.kind is Kind.NUMBER:
        return float(text)
    return names_of(text) if spec.kind is Kind.NAMES else text


def _checked_integer(spec: OptionSpec, text: str) -> int:
    number = int(text)
    if spec.minimum is not None and number < spec.minimum:
        raise ConfigError(f"{spec.key}: expected at least {spec.minimum}, found {number}. See docs/options.md.")
    return number


def _kind_of(default: object) -> Kind:
    if isinstance(default, bool):
        return Kind.FLAG
    if isinstance(default, int):
        return Kind.INTEGER
    if isinstance(default, float):
        return Kind.NUMBER
    return Kind.NAMES if isinstance(default, tuple) else Kind.TEXT


def _default_text(default: object) -> str:
    """A default as users type it: numbers without an exponent; "" without a default."""
    if default is None:
        return ""
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, float):
        return f"{Decimal(repr(default)):f}"
    return ",".join(default) if isinstance(default, tuple) else str(default)


# ---- options of a user's class ----


def is_own_class(name: str) -> bool:
    """True for a user's class, "module:Class". Any other text is a known name."""
    return ":" in name


def own_rows(option_key: str, name: str) -> tuple[OptionSpec, ...]:
    """The options that the user's class `name`, the value of `option_key`, declares; none for a known name.

    Raises ConfigError for a class that can't be imported, and for an `options_class` without options.
    """
    if not is_own_class(name):
        return ()
    classes: Registry[type] = Registry(option_key, {})
    declared = getattr(classes.load(name), "options_class", None)
    if declared is None:
        return ()
    rows = tuple(specs_of(declared)) if is_dataclass(declared) and isinstance(declared, type) else ()
    if not rows:
        raise ConfigError(
            f"{option_key}={name}: its options_class is {declared!r}; expected a dataclass whose fields are made by "
            f"pyhudi.model.options.declare.option. See docs/contributing/add-an-option.md."
        )
    return rows


def own_texts(option_key: str, name: str, values: Values) -> dict[str, str]:
    """The call's options of that class: key → text."""
    return {row.key: values.texts[row.key] for row in own_rows(option_key, name) if row.key in values.texts}


def own_options(kind: type[Options], texts: Mapping[str, str]) -> Options:
    """Read the options that a class declares from text. Raises ConfigError for a wrong value."""
    return parse(kind, Values(texts))
