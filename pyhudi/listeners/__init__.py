"""Who hears what actions do. `tell` is called once for each action that is done."""

from pyhudi.listeners.done import LISTENERS, ActionDone, Listener, check_listeners, tell, told_afterwards

__all__ = ["LISTENERS", "ActionDone", "Listener", "check_listeners", "tell", "told_afterwards"]
