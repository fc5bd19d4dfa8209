"""Recall tuning: the cheapest setting that reaches a recall, or the best within a byte budget (docs/tuning.md)."""

from antisparse.tuning.picture import picture_path
from antisparse.tuning.result import Tuning
from antisparse.tuning.setting import Recall, Setting
from antisparse.tuning.tuner import tune

__all__ = ["Recall", "Setting", "Tuning", "picture_path", "tune"]
