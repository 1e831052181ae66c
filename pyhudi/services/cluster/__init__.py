"""Clustering: small or unsorted file groups are written anew."""
