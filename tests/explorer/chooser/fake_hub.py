"""A hub without a network: it answers what a test says, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from attention_models.protocol.hub import FetchRequest, HubFetched, HubFile, HubListing, LookUpRequest, Tensors
from attention_models.protocol.loading import Described, DescribeRequest
from attention_models.protocol.request import Cancelled, Failure, Request, Result
from attention_models.protocol.values import Capability, CheckpointInfo, StackInfo


class FakeHub:
    """Answers look-ups at once, and fetches when the test opens the gate; a called-off fetch leaves half of it."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.here = 0
        self.ggufs: tuple[HubFile, ...] = ()  # the repository has these
        self.has_safetensors = True
        self.parts = 0
        self.refuses = ""
        self.gate = threading.Event()
        self.cancelled = threading.Event()

    def run(
        self, request: Request, should_stop: Callable[[], bool], report: Callable[[str, float | None], None]
    ) -> Result:
        self.asked.append(request)
        if self.refuses:
            return Failure(request=request, sentence=self.refuses)
        if isinstance(request, LookUpRequest):
            return self._listing(request)
        assert isinstance(request, FetchRequest)
        report("Downloading tiny: 25 MB of 100 MB", 0.25)
        while not self.gate.wait(0.002):
            if should_stop():
                self.here = 50_000_000
                self.cancelled.set()
                raise Cancelled
        return HubFetched(request=request, reference=request.listing.reference, folder=request.listing.folder)

    def _listing(self, request: LookUpRequest) -> HubListing:
        found, file = listing(request.text, self.here, request), request.text.partition(":")[2]
        files = tuple(gguf for gguf in self.ggufs if gguf.name == file) if file else found.files
        return replace(
            found,
            files=files if file or self.has_safetensors else (),
            safetensors=100_000_000 if self.has_safetensors else 0,
            ggufs=self.ggufs,
            parts=self.parts,
            gguf=file,
        )


def listing(text: str, here: int = 0, request: LookUpRequest | None = None) -> HubListing:
    return HubListing(
        request=request or LookUpRequest(text=text),
        reference=f"hf://{text}",
        commit="0123456789abcdef",
        files=(HubFile("tokenizer.json", 1000, here=1000), HubFile("model.safetensors", 100_000_000, here=here)),
        folder="/cache/models--a--b/snapshots/0123456789abcdef",
        cache="/cache",
        tensors=Tensors({}, 0),
        licence="mit",
    )


def described(reference: str, refusal: str = "", understood: bool = True, text_part: str = "") -> Described:
    info = CheckpointInfo(
        reference=reference,
        name=f"the name of {reference}",
        folder="/models/x",
        family="causal",
        model_type="llama",
        architecture="LlamaForCausalLM",
        stacks=(StackInfo("decoder", 30, 9, 3),),
        width=576,
        context=8192,
        vocabulary=49152,
        parameters=134_515_008,
        file_bytes=98_362_432,
        head_dim=64,
        text_part=text_part,
    )
    return Described(
        request=DescribeRequest(reference=reference),
        refusal=refusal,
        info=info if understood else None,
        capabilities=(Capability("Attention", True, "270 heads"), Capability("Alignment", False, "one stack only")),
        weights=(("float32", 538_060_032), ("bfloat16", 269_030_016), ("float16", 269_030_016)),
        text_tokens=8192,
        text_bytes=1_528_823_808,
        where="CPU",
        free=12_300_000_000,
    )
