"""Fields of records from files: each of the type and range that is asked for, or an error that names it."""

from typing import Any

from lapwing.errors import LapwingError
from lapwing.storage.schemas import is_number

LONGEST_TEXT = 1 << 16
DAMAGED = "the file is damaged"


class Record:
    """A record from a file.

    Args:
        content: what the file holds.
        where: the file, and the place in it, for the message.

    Example:
        >>> Record({"dim": 3}, "model.json").whole("dim", least=1)
        3
    """

    def __init__(self, content: Any, where: str) -> None:
        """Refuse what is no record."""
        if not isinstance(content, dict):
            raise LapwingError(f"{where} must be a record, got {_shown(content)}; {DAMAGED}")
        self.content, self.where = content, where

    def has(self, name: str) -> bool:
        """Whether a field is there and known."""
        return self.content.get(name) is not None

    def whole(self, name: str, least: int | None = None, most: int | None = None) -> int:
        """A whole number, neither a truth value nor a fraction."""
        value = self._get(name)
        if type(value) is not int:
            raise self._wrong(name, "a whole number", value)
        return self._between(name, value, least, most)

    def number(self, name: str, least: float | None = None, most: float | None = None) -> float:
        """A finite number."""
        value = self._get(name)
        if not is_number(value):
            raise self._wrong(name, "a finite number", value)
        return float(self._between(name, value, least, most))

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str:
        """Text of bounded length."""
        value = self._get(name)
        if not isinstance(value, str) or len(value) > longest:
            raise self._wrong(name, f"text of at most {longest:,} characters", value)
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def record(self, name: str) -> "Record":
        """A record inside this one."""
        return Record(self._get(name), f"{name!r} in {self.where}")

    def numbers(self, name: str, least: float | None = None) -> list[float]:
        """A list of finite numbers."""
        value = self._get(name)
        if not isinstance(value, list) or not all(is_number(item) for item in value):
            raise self._wrong(name, "a list of finite numbers", value)
        return [float(self._between(name, item, least, None)) for item in value]

    def wholes(self, name: str, least: int | None = None, most: int | None = None) -> list[int]:
        """A list of whole numbers."""
        value = self._get(name)
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self._wrong(name, "a list of whole numbers", value)
        return [self._between(name, item, least, most) for item in value]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts", value)
        return list(value)

    def _get(self, name: str) -> Any:
        if name not in self.content:
            raise LapwingError(f"{self.where} lacks the field {name!r}; {DAMAGED}")
        return self.content[name]

    def _between(self, name: str, value: Any, least: float | None, most: float | None) -> Any:
        if (least is not None and value < least) or (most is not None and value > most):
            limits = [f"at least {least:,}"] if least is not None else []
            limits += [f"at most {most:,}"] if most is not None else []
            raise self._wrong(name, " and ".join(limits), value)
        return value

    def _wrong(self, name: str, wanted: str, value: Any) -> LapwingError:
        return LapwingError(f"{self.where}: {name!r} must be {wanted}, got {_shown(value)}; {DAMAGED}")


def _shown(value: Any) -> str:
    """A value from a file in a few printable characters."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value):,}"
    text = ascii(value if not isinstance(value, str) else value[:80])
    return text if len(text) <= 80 else f"{text[:80]}..."
