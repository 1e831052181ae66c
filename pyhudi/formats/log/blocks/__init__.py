"""Contents of log blocks, one file per layout. Change blocks (CDC_DATA) are laid out as `avro_data`."""
