"""Listeners of completed actions: metrics and commit callbacks. `notify` is called once for each completed action."""

from pyhudi.listeners.notification import (
    LISTENERS,
    ActionCompleted,
    Listener,
    check_listeners,
    notify,
    notify_afterwards,
)

__all__ = ["LISTENERS", "ActionCompleted", "Listener", "check_listeners", "notify", "notify_afterwards"]
