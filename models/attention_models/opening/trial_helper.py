"""The process that tries checkpoints, started before it is needed. No torch."""

from __future__ import annotations

from attention_models.files.catalogue import HANDED_OVER, SHIPPED
from attention_models.files.helper_process import HelperProcess
from attention_models.files.helper_work import TRY_CHECKPOINTS

THE_PROCESS = HelperProcess("attention_models.opening.trial_process", TRY_CHECKPOINTS)


def start_for(reference: str) -> None:
    """Have it ready, without waiting, where the checkpoint that is to be opened will be tried.

    It imports torch for two or three seconds, in which this program does so too.
    """
    if reference not in SHIPPED and not reference.startswith(HANDED_OVER):
        THE_PROCESS.start()
