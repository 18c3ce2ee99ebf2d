"""Built-in tasks; importing this package registers them."""

from internutopia_extension.tasks import finite_step_task, manipulation_task, navigation_task, single_inference_task

__all__ = ['finite_step_task', 'manipulation_task', 'navigation_task', 'single_inference_task']
