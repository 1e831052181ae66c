"""A pipeline's configuration: what is wrong is refused before anything starts, with the line and the right word."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import Streamer
from pyhudi.errors import ConfigError
from pyhudi.streamer.settings import PipelineSettings, load_settings


def written(tmp_path: Path, text: str, name: str = "p.toml") -> PipelineSettings:
    path = tmp_path / name
    path.write_text(text)
    return load_settings(path)


def test_flags_names_of_python_and_keys_of_hudi_are_read_from_toml(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        'target-base-path = "/lake/t"\nrecord_key = ["a", "b"]\ntable-type = "mor"\n'
        "[hoodie.streamer.source.dfs]\nroot = '/in'\n[kafka]\nbootstrap.servers = 'h:1'\n",
    )

    assert settings.target == "/lake/t"
    assert settings.write["hoodie.datasource.write.recordkey.field"] == "a,b"
    assert settings.write["hoodie.datasource.write.table.type"] == "mor"
    assert settings.options.files.root == "/in"
    assert settings.client == {"bootstrap.servers": "h:1"}


def test_a_properties_file_of_hoodiestreamer_is_read_as_it_is_old_spellings_and_includes_too(tmp_path: Path) -> None:
    (tmp_path / "base.properties").write_text(
        "hoodie.datasource.write.recordkey.field=id\nhoodie.deltastreamer.source.dfs.root=/old\n"
    )
    settings = written(
        tmp_path,
        "include=base.properties\n--target-base-path=/lake/t\n--op=BULK_INSERT\n--source-ordering-field=ts\n"
        "hoodie.deltastreamer.source.dfs.root=/in\nhoodie.deltastreamer.keygen.timebased.timezone=UTC\n",
        "p.properties",
    )

    assert settings.options.files.root == "/in"
    assert settings.operation == "bulk_insert"
    assert settings.write["hoodie.table.ordering.fields"] == "ts"
    assert settings.write["hoodie.datasource.write.recordkey.field"] == "id"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('hoodie.streamer.source.kafka.topik = "t"', r"p\.toml:2: .*topik.*no such key.*source\.kafka\.topic\?"),
        ('source-clas = "x"', r"p\.toml:2: source-clas: .*Did you mean source-class\?"),
        ('record_keys = "x"', r"p\.toml:2: record_keys: .*Did you mean record_key\?"),
        ("continuous = 7", r"p\.toml:2: hoodie\.streamer\.continuous: expected true or false, found '7'"),
        ('table-type = "COW_ON_WRITE"', r"p\.toml:2: .*table\.type: expected one of COPY_ON_WRITE"),
        ('op = "bootstrap"', r"p\.toml:2: operation bootstrap"),
        ("filter-dupes = true", r"p\.toml:2: filter-dupes .* an upsert"),
        ("run-bootstrap = true", r"p\.toml:2: .*run-bootstrap=true: .*does not do what it asks"),
        ('source-class = "PulsarSource"', r"p\.toml: source-class=PulsarSource: Hudi has this source"),
        ('source-class = "JsonDfsSource"', r"Unknown source 'JsonDfsSource'. Did you mean 'JsonDFSSource'\?"),
        ('transformer-class = "SqlQueryTransformer"', r"Unknown transformer .* 'SqlQueryBasedTransformer'"),
        ("hoodie.errortable.enable = true", r"hoodie\.errortable\.base\.path is missing"),
        ('source-class = "CsvDFSSource"', r"hoodie\.streamer\.csv\.header=true"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_the_right_word(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "p.toml"
    root = f'[hoodie.streamer.source.dfs]\nroot = "{tmp_path}/in"\n'
    path.write_text(f'target-base-path = "{tmp_path}/t"\n{line}\n{root}')

    with pytest.raises(ConfigError, match=words):
        Streamer(path)
    assert not (tmp_path / "t").exists()


def test_a_configuration_without_a_table_or_without_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="target-base-path is missing"):
        load_settings({"record_key": "id"})
    with pytest.raises(ConfigError, match=r"There is no configuration .*none\.toml"):
        load_settings(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="no TOML"):
        written(tmp_path, "a = = 1")
