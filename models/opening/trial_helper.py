"""The process that tries checkpoints, started before it is needed. No torch."""

from __future__ import annotations

from models.files.catalogue import HANDED_OVER, SHIPPED
from models.files.helper_process import HelperProcess
from models.files.helper_work import TRY_CHECKPOINTS

THE_PROCESS = HelperProcess("models.opening.trial_process", TRY_CHECKPOINTS)


def start_for(reference: str) -> None:
    """Have it ready, without waiting, where the checkpoint that is to be opened will be tried.

    It imports torch for two or three seconds, in which this program does so too.
    """
    if reference not in SHIPPED and not reference.startswith(HANDED_OVER):
        THE_PROCESS.start()
