"""Clustering: small or unsorted file groups are rewritten."""
