"""Options are declared by fields: what a call gives becomes their values, and rows of the option table come of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pytest

from pyhudi.errors import ConfigError
from pyhudi.model.options import Kind, ReadOptions, WriteOptions
from pyhudi.model.options.declare import (
    Values,
    computed,
    key_of,
    milliseconds,
    names_of,
    option,
    own_specs,
    parse,
    part,
    row,
    specs_of,
    topic,
)

_SOUND = row("hoodie.tea.sound", True, "Whether it whistles.")


@dataclass(frozen=True, slots=True)
class Pot:
    """A part of another class."""

    litres: float = option("hoodie.tea.pot.litres", 1.5, "How much it holds.")


@dataclass(frozen=True, slots=True)
class Tea:
    """One option of every kind."""

    is_hot: bool = option("hoodie.tea.hot", True, "Whether it is hot.", aliases=("hoodie.tea.warm",), keyword="hot")
    cups: int = option("hoodie.tea.cups", 2, "How many cups.", minimum=1)
    sugar: float = option("hoodie.tea.sugar", 1e-9, "How sweet.")
    herbs: tuple[str, ...] = option("hoodie.tea.herbs", (), "What is in it.")
    shelf: tuple[str, ...] = option("hoodie.tea.shelf", (), "Where it is.", kind=Kind.TEXT, convert=names_of)
    name: str | None = option("hoodie.tea.name", None, "What it is called.", choices=("earl", "jasmine"))
    guests: int | None = option("hoodie.tea.guests", None, "Who comes.", kind=Kind.INTEGER)
    steep_s: float = milliseconds("hoodie.tea.steep.ms", 90.0, "How long, in milliseconds.")
    sounds: Mapping[str, bool] = computed(dict, _SOUND)
    pot: Pot = part(Pot)
    is_drunk: bool = False


def tea(**given: str) -> Tea:
    return parse(Tea, Values({f"hoodie.tea.{key.replace('_', '.')}": text for key, text in given.items()}))


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"hot": "false"}, "is_hot", False),
        ({"cups": "3"}, "cups", 3),
        ({"sugar": "0.5"}, "sugar", 0.5),
        ({"herbs": "mint,sage"}, "herbs", ("mint", "sage")),
        ({"shelf": "a, b"}, "shelf", ("a", " b")),
        ({"name": "earl"}, "name", "earl"),
        ({"guests": "4"}, "guests", 4),
        ({"steep_ms": "1500"}, "steep_s", 1.5),
        ({"pot_litres": "2"}, "pot", Pot(2.0)),
    ],
)
def test_a_field_takes_what_is_given_for_its_option(given: dict[str, str], field: str, value: object) -> None:
    made = tea(**given)
    assert (getattr(made, field), type(getattr(made, field))) == (value, type(value))


def test_fields_whose_options_are_not_given_keep_their_defaults() -> None:
    assert tea() == Tea()
    assert tea(name="", cups="") == Tea()


def test_an_integer_below_its_minimum_is_an_error_with_key_and_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.tea\.cups: expected at least 1, found 0"):
        tea(cups="0")


def test_the_rows_of_a_class_come_in_the_order_of_its_fields_with_their_defaults_as_text() -> None:
    assert [(spec.key, spec.kind, spec.default) for spec in specs_of(Tea)] == [
        ("hoodie.tea.hot", Kind.FLAG, "true"),
        ("hoodie.tea.cups", Kind.INTEGER, "2"),
        ("hoodie.tea.sugar", Kind.NUMBER, "0.000000001"),
        ("hoodie.tea.herbs", Kind.NAMES, None),
        ("hoodie.tea.shelf", Kind.TEXT, None),
        ("hoodie.tea.name", Kind.TEXT, None),
        ("hoodie.tea.guests", Kind.INTEGER, None),
        ("hoodie.tea.steep.ms", Kind.INTEGER, "90000"),
        ("hoodie.tea.sound", Kind.FLAG, "true"),
        ("hoodie.tea.pot.litres", Kind.NUMBER, "1.5"),
    ]


def test_a_row_says_what_its_field_says() -> None:
    spec = own_specs(Tea)["is_hot"]
    assert (spec.doc, spec.aliases, spec.keyword) == ("Whether it is hot.", ("hoodie.tea.warm",), "hot")
    assert key_of(Tea, "name") == "hoodie.tea.name"
    assert own_specs(Tea)["name"].normalise("EARL") == "earl"


def test_a_heading_of_the_page_holds_classes_and_options_without_a_field() -> None:
    rows = topic("Tea", Pot, _SOUND)
    assert [(spec.group, spec.key) for spec in rows] == [("Tea", "hoodie.tea.pot.litres"), ("Tea", "hoodie.tea.sound")]


@pytest.mark.parametrize("kind", [WriteOptions, ReadOptions])
def test_the_type_of_every_field_is_what_its_option_is_read_as(kind: type) -> None:
    text_of = {Kind.FLAG: "true", Kind.INTEGER: "1000000", Kind.NUMBER: "0.5", Kind.NAMES: "a,b", Kind.TEXT: "text"}
    pairs = ("hoodie.write.commit.callback.http.custom.headers", "hoodie.metrics.pushgateway.report.labels")
    form_of = dict.fromkeys(pairs, "name:value")
    sync = "hoodie.datasource.hive_sync"
    form_of |= {f"{sync}.{name}": "name=value" for name in ("table_properties", "serde_properties")}
    form_of[f"{sync}.partition_extractor_class"] = "MultiPartKeysValueExtractor"
    form_of["hoodie.pyhudi.export.iceberg.table"] = "lake.rides"
    glue = "hoodie.datasource.meta.sync.glue"
    form_of |= {f"{glue}.resource_tags": "name:value", f"{glue}.all_partitions_read_parallelism": "10"}
    classes = [kind]
    for each in classes:
        hints = get_type_hints(each)
        classes += [hints[field.name] for field in fields(each) if is_dataclass(hints[field.name])]
        for name, spec in own_specs(each).items():
            value = getattr(parse(each, Values({spec.key: form_of.get(spec.key, text_of[spec.kind])})), name)
            hint = hints[name]
            allowed = get_args(hint) if get_origin(hint) is UnionType else (get_origin(hint) or hint,)
            value_type = Mapping if isinstance(value, Mapping) else type(value)
            assert value_type in allowed, f"{each.__name__}.{name}"
