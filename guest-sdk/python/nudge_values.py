"""Values of the contract as Python has them: what `nudge.py` stands on."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from wit_world.imports.types import (
    Value_Boolean,
    Value_Json,
    Value_Null,
    Value_Number,
    Value_Text,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
MISSING = object()
"""A property that is not there, or is withheld by the app's privacy policy; `None` is a JSON null."""


def _text(value: Any, what: str) -> str:
    """A text of the contract. A value of another type would end the call without a word."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, and is {value!r}")
    return value


def _texts(values: Any, what: str) -> list:
    """A list of texts of the contract."""
    if isinstance(values, str):
        raise TypeError(f"{what} must be a list of str, and is {values!r}")
    return [_text(value, f"each of {what}") for value in values]


def _answered(value: Any, name: str) -> Any:
    """What a method of the plugin answers. Nothing would ever await a coroutine."""
    if hasattr(value, "__await__"):
        value.close()
        raise TypeError(f"`{name}` must answer at once: it can't be async")
    return value


def _is_fired(value: Any, name: str) -> bool:
    """Whether a decision fires. A value that only counts as true would fire for nobody, and say nothing."""
    if _answered(value, name) and value is not True:
        raise TypeError(f"`{name}` must return True or False, and returned {value!r}")
    return value is True


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def _iso(instant: datetime) -> str:
    """An instant as a text of ISO 8601."""
    utc = _instant(_micros(instant))
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fraction(random: int) -> float:
    """A random number of the host, which has 64 bits, as a fraction from 0 to 1."""
    return (random >> 11) / 2**53


def _from_wit(value: Any) -> Any:
    if value is None:
        return MISSING
    if isinstance(value, Value_Null):
        return None
    if isinstance(value, Value_Json):
        return json.loads(value.value)
    return value.value


def _to_wit(value: Any) -> Any:
    if value is MISSING:
        return None
    if value is None:
        return Value_Null()
    if isinstance(value, bool):
        return Value_Boolean(value)
    if isinstance(value, (int, float)):
        return Value_Number(float(value))
    if isinstance(value, str):
        return Value_Text(value)
    return Value_Json(json.dumps(value))


def _shown(value: Any) -> str:
    """A value as it stands inside a text: numbers, booleans, arrays and objects as they were sent."""
    # Cells give all numbers as floats. From here on they stand with an exponent, as in JavaScript.
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    if isinstance(value, (bool, int, float, list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "" if value is None or value is MISSING else str(value)


class _Table:
    """The contract's table, cell by cell."""

    def __init__(self, cells: Any, columns: list):
        self._cells = cells
        self._columns = {path: column for column, path in enumerate(columns)}
        self._width = len(columns)
        self._bytes: Optional[bytes] = None

    def _text(self, index: int) -> str:
        if self._bytes is None:
            # The ends count bytes.
            self._bytes = self._cells.text.encode()
        start = self._cells.ends[index - 1] if index else 0
        return self._bytes[start : self._cells.ends[index]].decode()

    def get(self, row: int, path: str) -> Any:
        column = self._columns.get(path)
        if column is None:
            raise KeyError(f"`{path}` is not among what `check` says is read")
        index = row * self._width + column
        tag = self._cells.tags[index]
        if tag == 1:
            return None
        if tag in (2, 3):
            return tag == 3
        if tag == 4:
            return self._cells.numbers[index]
        if tag == 5:
            return self._text(index)
        if tag == 6:
            return json.loads(self._text(index))
        return MISSING

    def row(self, row: int) -> dict:
        return {path: self.get(row, path) for path in self._columns}


class EventReference:
    """Which event it was, and when it happened."""

    def __init__(self, id: str, timestamp: datetime):
        self.id = id
        self.timestamp = timestamp


class PastEvent(EventReference):
    """An event of a subject's history."""

    def __init__(self, id: str, timestamp: datetime, properties: dict):
        super().__init__(id, timestamp)
        self.properties = properties


def _history(found: Any, properties: list) -> list:
    table = _Table(found.properties, properties)
    return [
        PastEvent(id, _instant(found.timestamps[row]), table.row(row))
        for row, id in enumerate(found.ids)
    ]
