"""What a page says, in the reader's language. English is written where it is said."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
LOCALES: dict[Language, str] = {"en": "en", "zh": "zh-CN"}  # as HTML names them


@dataclass(frozen=True)
class Sentence:
    """Something to say, with places such as {seeds} for what differs."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Translations:
    """Says things in a language, and in English what it has no words for."""

    language: Language = "en"

    def __call__(self, text: str | Sentence, **values: Any) -> str:
        if isinstance(text, Sentence):
            return self(text.text, **text.values)
        said = self.known.get(text, text)
        return said.format(**values) if values else said

    @property
    def known(self) -> Mapping[str, str]:
        """By the English."""
        return chinese() if self.language == "zh" else {}

    @property
    def locale(self) -> str:
        return LOCALES[self.language]


@cache
def chinese() -> dict[str, str]:
    """Every English text of a page, and the Chinese for it."""
    text = Path(__file__).with_name("chinese.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
