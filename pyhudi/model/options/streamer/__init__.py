"""Options of pipelines: one file per topic, put together in `streamer.py`."""
