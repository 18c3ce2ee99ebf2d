"""Built-in rewards; importing this package registers them."""

from internutopia_extension.rewards import effort_penalty, progress_to_goal

__all__ = ['effort_penalty', 'progress_to_goal']
