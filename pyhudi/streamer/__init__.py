"""Pipelines from sources into tables."""
