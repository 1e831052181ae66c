"""Avro: schemas and containers as Hudi writes them."""
