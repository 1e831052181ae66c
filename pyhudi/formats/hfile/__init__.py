"""HFile version 3: a sorted file of keys and values with an index, as Hudi keeps its metadata table in.

Read in order, block by block, or at single keys and prefixes. Source: docs/formats/hfile.md, "Layout".
"""

from pyhudi.formats.hfile.cached_reader import open_hfile
from pyhudi.formats.hfile.entries import GATHER_BYTES, Entries, gathered
from pyhudi.formats.hfile.reader import HFileReader
from pyhudi.formats.hfile.writer import HFileWriter, Sink

__all__ = ["GATHER_BYTES", "Entries", "HFileReader", "HFileWriter", "Sink", "gathered", "open_hfile"]
