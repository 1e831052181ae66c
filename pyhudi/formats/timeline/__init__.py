"""The bodies of instant files, active and archived: bytes ↔ the model."""
