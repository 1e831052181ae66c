"""Log block CDC_DATA: change records, laid out as an Avro data block under the change schema of its header.

Source: spec, files and records 2.4 and 6.1.
"""

from pyhudi.formats.log.blocks.avro_data import decode, encode

__all__ = ["decode", "encode"]
