"""Sentences for what a hub, the network or the cache's disk refuses. None quotes the content of an answer."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)

from attention_models.files.names import HubName
from attention_models.protocol.errors import CheckpointError

_DISK = {
    errno.ENOSPC: "is full. Make room, or set HF_HOME to a folder on another disk. What came so far is kept",
    errno.EDQUOT: "has no more room for you. Make room, or set HF_HOME to a folder on another disk",
}


@contextmanager
def hub_errors_explained(name: HubName, endpoint: str, cache: Path) -> Iterator[None]:
    """Turn errors of the hub at `endpoint`, of the network and of the disk of `cache` into `CheckpointError`."""
    try:
        yield
    except CheckpointError:
        raise
    except OfflineModeIsEnabled as cause:
        raise CheckpointError("huggingface_hub is set to stay offline (HF_HUB_OFFLINE). Unset it to fetch.") from cause
    except HfHubHTTPError as cause:
        raise CheckpointError(_of_status(cause, name, endpoint)) from cause
    except httpx2.TimeoutException as cause:
        raise CheckpointError(
            f"{host_of(endpoint)} does not answer. What came so far is kept; try again in a while."
        ) from cause
    except (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as cause:
        raise CheckpointError(
            f"There is no connection to {host_of(endpoint)}. Check the network (and HF_ENDPOINT, where you set it), "
            "or open a checkpoint that lies on this computer."
        ) from cause
    except (httpx2.TransportError, LocalEntryNotFoundError) as cause:
        raise CheckpointError(
            f"The connection to {host_of(endpoint)} breaks off again and again. What came so far is kept; "
            "fetch again to go on from there."
        ) from cause
    except OSError as cause:
        why = _DISK.get(cause.errno or 0, "cannot be written. Set HF_HOME to a folder that you may write to")
        what = "The disk of " if cause.errno in _DISK else ""
        raise CheckpointError(f"{what}{cache} {why}.") from cause
    except (
        ValueError,
        ArithmeticError,
        TypeError,
        AttributeError,
        KeyError,
        RecursionError,
        httpx2.HTTPError,
    ) as cause:
        raise CheckpointError(
            f"{host_of(endpoint)} answers, but not as a hub does. Check HF_ENDPOINT and the network (a login page?)."
        ) from cause


def host_of(endpoint: str) -> str:
    """The hub's name, for sentences; what was set in its place where that is no address."""
    return endpoint.partition("://")[2].partition("/")[0] or endpoint


def _of_status(error: HfHubHTTPError, name: HubName, endpoint: str) -> str:
    status, host = error.response.status_code, host_of(endpoint)
    if isinstance(error, GatedRepoError):
        return (
            f"{name.repository} is only for those who asked for it. Ask on its page ({endpoint}/{name.repository}), "
            "then log in with “hf auth login” or set HF_TOKEN, and look it up again."
        )
    if isinstance(error, RevisionNotFoundError):
        return f"{name.repository} has no revision “{name.branch}”. Check it on the model's page."
    if status == 401:
        return (
            f"{host} lets nobody see {name.repository} who is not logged in, or has no such model. Check the name; "
            "where the model is private, log in with “hf auth login” or set HF_TOKEN."
        )
    if status == 403:
        return f"{host} does not let you fetch {name.repository} (403). Your token may lack the right to read it."
    if status == 404:
        return f"{host} has no model {name.repository}. Check the name: owner/name, as on the model's page."
    if status == 429:
        wait = error.response.headers.get("Retry-After", "")
        when = f"in {wait} seconds" if wait.isdigit() else "in a few minutes"
        return f"{host} says that too much was asked of it (429). Try again {when}; logging in raises the limit."
    return f"{host} has a fault of its own ({status}). Try again later."
