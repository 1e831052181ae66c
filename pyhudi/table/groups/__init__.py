"""Groups of a table's rarer calls, each a property of HudiTable: `maintenance`, `inspect`, `savepoints` and so on."""
