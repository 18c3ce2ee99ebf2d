"""Reward: what is left of the way, negative."""
# pyright: reportAttributeAccessIssue=false

from internutopia.core.task import BaseReward


@BaseReward.register('CloserReward')
class CloserReward(BaseReward):
    def init_setting(self):
        self.weight = self.settings.get('weight', 1.0)

    def calc(self) -> float:
        self._calc_next_state()
        return -self.weight * self.state

    def _calc_next_state(self):
        self.state = self.task.distance
