"""Small passes between small values, for the tests of the machinery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from colsynth.errors import Diagnostic, LimitError
from colsynth.pipeline.registry import Registry
from colsynth.runtimes.target import Target


@dataclass(frozen=True)
class Draft:
    words: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    body: str


@dataclass(frozen=True)
class AddWord:
    """Append a word.

    More about it.
    """

    name: ClassVar[str] = "add-word"
    takes: ClassVar[type] = Draft
    gives: ClassVar[type] = Draft

    word: str = "more"
    times: int = 1
    upper: bool = False
    at_most: int | None = None
    style: Literal["plain", "loud"] | int = "plain"

    def run(self, value: Draft, target: Target) -> Draft:
        word = self.word.upper() if self.upper else self.word
        return Draft((value.words + (word,) * self.times)[: self.at_most])


@dataclass(frozen=True)
class JoinWords:
    """Join the words to a text."""

    name: ClassVar[str] = "join-words"
    takes: ClassVar[type] = Draft
    gives: ClassVar[type] = Text

    def run(self, value: Draft, target: Target) -> Text:
        return Text(" ".join(value.words))


@dataclass(frozen=True)
class Misbehave:
    """Fail in a chosen way."""

    name: ClassVar[str] = "misbehave"
    takes: ClassVar[type] = Draft
    gives: ClassVar[type] = Draft

    how: Literal["raise", "limit", "type", "memory", "interrupt"] = "raise"

    def run(self, value: Draft, target: Target) -> Any:
        if self.how == "interrupt":
            raise SystemError from KeyboardInterrupt()
        if self.how == "limit":
            raise LimitError(Diagnostic("CS000", "too much"))
        if self.how == "type":
            return Text("not a draft")
        if self.how == "memory":
            np.empty((10**6, 10**9))
        raise KeyError("lost")


REGISTRY = Registry(
    {
        "add-word": "tests.pipeline.toys:AddWord",
        "join-words": "tests.pipeline.toys:JoinWords",
        "misbehave": "tests.pipeline.toys:Misbehave",
    }
)
