"""Arrow's own matters: kinds of types, and numbers in buffers."""
