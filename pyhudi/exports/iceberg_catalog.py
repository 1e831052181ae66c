"""The catalog of an Iceberg export, by pyiceberg: its properties, and the store of its metadata.

The metadata lie in the table's own store in most cases, so the table's storage options are properties of the catalog's
FileIO, too. What the caller or pyiceberg's configuration gives for the catalog comes before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError, MissingLibrary, StorageError
from pyhudi.model.options.catalogs.iceberg import ICEBERG_CATALOG_PREFIX, IcebergOptions
from pyhudi.redaction import is_secret, without_secrets
from pyhudi.storage.base import Storage
from pyhudi.storage.stores.other_libraries import pyiceberg_properties

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["open_catalog"]

_STORES = ("s3.", "gcs.", "adls.")  # begin the properties of pyiceberg's FileIO
_LOGINS = (".anonymous", ".account-name", ".client-id", ".tenant-id")  # that are no secrets
_GLUE_RETRIES = "glue.max-retries"


def open_catalog(options: IcebergOptions, storage: Storage) -> Catalog:
    """Open the catalog of an export. Raises ConfigError for an unknown one, MissingLibrary, StorageError."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NotInstalledError
    from pyiceberg.utils.config import Config

    name, store = options.catalog, pyiceberg_properties(storage)
    configured = Config().get_catalog_config(name) if store else None
    properties = _with_store({**(configured or {}), **options.properties}, store)
    if properties.get(_GLUE_RETRIES, "").isdecimal():
        properties[_GLUE_RETRIES] = int(properties[_GLUE_RETRIES])  # pyiceberg hands a text to boto3, which refuses it
    try:
        try:
            return load_catalog(name, **properties)
        except Exception as error:
            if "already exists" not in str(error):
                raise
            return load_catalog(name, **properties)  # another process made the tables of a SQL catalog at that moment
    except NotInstalledError as error:
        raise MissingLibrary(f"The Iceberg catalog {name!r} needs a library: {error}.") from error
    except (ValueError, KeyError, TypeError) as error:
        cause = without_secrets(error, properties)
        raise ConfigError(
            f"The Iceberg catalog {name!r} can't be opened: {cause}. Give its properties as options, "
            f"{ICEBERG_CATALOG_PREFIX}<property> (type, uri, warehouse), or in ~/.pyiceberg.yaml. Nothing was exported."
        ) from cause
    except Exception as error:  # of its client: no server, no rights
        cause = without_secrets(error, properties)
        raise StorageError(
            f"The Iceberg catalog {name!r} does not answer: {type(error).__name__}: {cause}. Nothing was exported."
        ) from cause


def _with_store(given: Mapping[str, Any], store: Mapping[str, str]) -> dict[str, Any]:
    """The catalog's properties, and those of the table's store for its metadata. A login is of one of both."""
    logs_in = any(name.startswith(_STORES) and is_secret(name) for name in given)
    return {**{name: value for name, value in store.items() if not (logs_in and _is_login(name))}, **given}


def _is_login(name: str) -> bool:
    return is_secret(name) or name.endswith(_LOGINS)
