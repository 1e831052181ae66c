"""Options of metadata of other formats that a table has after each commit."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.model.options.catalogs.iceberg import IcebergOptions, iceberg_options
from pyhudi.model.options.declare import Values, key_of, option, parse, part
from pyhudi.model.options.spec import Kind

__all__ = ["ExportOptions", "check_export_library", "export_options", "key_of_export"]

_LIBRARIES = {
    "delta": "deltalake",
    "iceberg": "pyiceberg",
}  # format → its library; the extra of pyhudi is called as the format


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """`formats`: after each commit. `retain_hours`: how long cleaning waits for an export."""

    formats: tuple[str, ...] = option(
        "hoodie.pyhudi.export.formats",
        (),
        "Formats whose metadata is written over the table's own files after each commit: `delta`, `iceberg` "
        "(docs/exports.md).",
        Kind.NAMES,
    )
    retain_hours: int = option(
        "hoodie.pyhudi.export.retain.hours",
        24,
        "Hours for which cleaning keeps the files of an export, counted from the first commit that the export lacks. "
        "The next export ends the time.",
        minimum=0,
    )
    iceberg: IcebergOptions = part(IcebergOptions, iceberg_options)


def key_of_export(name: str) -> str:
    """The key of the option of a field."""
    return key_of(ExportOptions, name)


def export_options(values: Values) -> ExportOptions:
    """The options of a call. Raises ConfigError for another format, MissingLibrary for one that can't be exported."""
    options = parse(ExportOptions, values)
    for name in options.formats:
        if name not in _LIBRARIES:
            raise ConfigError(
                f"{key_of_export('formats')}: expected {' or '.join(_LIBRARIES)}, found {name!r:.100}. Nothing was "
                "written."
            )
        check_export_library(name, f"{key_of_export('formats')}={name}")
    return options


def check_export_library(name: str, what: str) -> None:
    """Raise MissingLibrary without the library of a format."""
    library = _LIBRARIES[name]
    if find_spec(library) is None:
        raise MissingLibrary(f'{what} needs {library}, which is not installed: pip install "pyhudi[{name}]".')
