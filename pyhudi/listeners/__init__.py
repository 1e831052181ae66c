"""Who hears what actions do. `tell` is called once for each action that is done."""

from pyhudi.listeners.done import LISTENERS, ActionDone, Listener, tell

__all__ = ["LISTENERS", "ActionDone", "Listener", "tell"]
