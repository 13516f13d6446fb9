"""What authors of Nudge plugins in Python import: one class a kind of plugin, to derive from.

Instants are `datetime`s in UTC, spans are `timedelta`s. The component's entry point is a class that
componentize-py finds by its name, `TriggerPlugin`, `ValidationPlugin` or `PersonalizationPlugin`: derive it
from `Trigger`, `Validation` or `Personalization`.
"""

import json
from datetime import datetime, timedelta
from typing import Any, Optional, Union

import nudge_values
from componentize_py_types import Err
from nudge_values import (
    MISSING,
    EventReference,
    PastEvent,
    _answered,
    _fraction,
    _from_wit,
    _history,
    _instant,
    _is_fired,
    _iso,
    _micros,
    _shown,
    _Table,
    _text,
    _texts,
    _to_wit,
)
from wit_world.imports import log as _log
from wit_world.imports.types import Description, Problem, Reads, Refusal

# A world has one of these two, or neither; modules can't be imported once the component is made.
try:
    from wit_world.imports.validation_host import Violation as _Violation
except ImportError:
    _Violation = None
try:
    from wit_world.imports.personalization_host import Resolution as _Resolution
except ImportError:
    _Resolution = None

_OWN_FILES = (__file__, nudge_values.__file__)


class ConfigError(Exception):
    """What is wrong with a configuration: raise it in `check`."""

    def __init__(self, code: str, pointer: str, message: str):
        super().__init__(message)
        texts = [_text(text, "each of a problem's texts") for text in (code, pointer, message)]
        self.problems = [Problem(*texts, [])]

    @classmethod
    def several(cls, errors: list) -> "ConfigError":
        """One error that names the problems of all these."""
        first, *others = errors
        for other in others:
            first.problems.extend(other.problems)
        return first


class Refused(Exception):
    """Refuses a whole batch: nothing of it takes effect."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = _text(code, "a refusal's code")


def log(message: Any, level: str = "INFO") -> None:
    """Writes a line for the plugin's author and operators: up to 8 KiB a call."""
    _log.write(getattr(_log.Level, level), str(message))


def reads(events=(), properties=(), subject_properties=(), history=()) -> Reads:
    """What decisions under a configuration read: the host sends nothing else. `history` are names of events whose
    past is asked for without being called for them."""
    more = [("history", name) for name in _texts(history, "history")]
    return Reads(
        _texts(events, "events"),
        _texts(properties, "properties"),
        _texts(subject_properties, "subject_properties"),
        more,
    )


def _told(error: Exception) -> str:
    """An error and the lines that led to it, the innermost last."""
    places = []
    entry = error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename not in _OWN_FILES:
            file = code.co_filename.rsplit("/", 1)[-1]
            places.append(f"{file}, line {entry.tb_lineno}, in {code.co_name}")
        entry = entry.tb_next
    return f"{error!r} ({'; '.join(places)})" if places else repr(error)


class _Plugin:
    """What all kinds have in common."""

    name: str
    version: str
    summary: str = ""
    config_schema: Optional[dict] = None

    def check(self, config: Any) -> Reads:
        """Checks a configuration and says what decisions under it read."""
        raise NotImplementedError

    def describe(self) -> Description:
        try:
            schema = json.dumps(self.config_schema) if self.config_schema else ""
            texts = [_text(getattr(self, what), what) for what in ("name", "version", "summary")]
            return Description(*texts, schema, [])
        except Exception as error:
            log(_told(error), "ERROR")
            raise

    def _reads(self, config: Any) -> Reads:
        found = _answered(self.check(config), "check")
        if not isinstance(found, Reads):
            raise TypeError(f"`check` must return `reads(…)`, and returned {found!r}")
        return found

    def check_config(self, config: str) -> Reads:
        try:
            return self._reads(json.loads(config))
        except ConfigError as error:
            raise Err(error.problems) from None
        except Exception as error:
            told = _told(error)
            log(told, "ERROR")
            raise Err([Problem("exception", "", told, [])]) from None

    def _decide(self, batch: Any) -> None:
        raise NotImplementedError

    def _decided(self, batch: Any) -> None:
        """Runs the decision: an exception refuses the batch, so that it can be read in the plugin's log."""
        try:
            self._decide(batch)
        except Refused as refused:
            raise Err(Refusal(refused.code, str(refused), [])) from None
        except Exception as error:
            told = _told(error)
            log(told, "ERROR")
            raise Err(Refusal("exception", told, [])) from None


class Event:
    """An event, or the event that set a timer."""

    def __init__(self, campaign: "_Campaign", item: int, row: int):
        self._campaign = campaign
        self.item = item
        self._row = row

    @property
    def name(self) -> str:
        batch = self._campaign.batch
        return batch.names[batch.name_indexes[self.item]]

    @property
    def id(self) -> str:
        return self._campaign.host.event_id(self.item)

    @property
    def timestamp(self) -> datetime:
        """When it happened, by the client's corrected clock."""
        return _instant(self._campaign.batch.timestamps[self.item])

    @property
    def received(self) -> datetime:
        """When it reached the server or, as a timer, fell due: the time of the decision."""
        return _instant(self._campaign.batch.received[self.item])

    @property
    def session(self) -> int:
        return self._campaign.batch.sessions[self.item]

    def get(self, path: str) -> Any:
        """The property at a dotted path that `check` names; `MISSING` where there is none."""
        return self._campaign.table.get(self._row, path)

    def json(self) -> dict:
        """All properties. Slower than those that `check` names."""
        return json.loads(self._campaign.host.event_json(self.item))


class Timer:
    """A timer that is due."""

    def __init__(self, key: str, payload: Any, event: Event):
        self.key = key
        self.payload = payload
        self.event = event


class Subject:
    """The subject of an event, as of just before that event."""

    def __init__(self, campaign: "_Campaign", event: Event):
        self._host = campaign.host
        self._batch = campaign.batch
        self._number = campaign.number
        self._item = event.item
        self.now = event.received

    @property
    def number(self) -> int:
        """Within one call, equal numbers are the same subject."""
        return self._batch.subjects[self._item]

    @property
    def campaign_id(self) -> str:
        """The campaign's identifier (a UUID), by which facts say what they know of it."""
        return self._host.campaign_id(self._number)

    def _since(self, within: Optional[timedelta]) -> Optional[int]:
        return None if within is None else _micros(self.now - within)

    def get_property(self, key: str) -> Any:
        """A saved property; `MISSING` where there is none."""
        return _from_wit(self._host.subject_property(self._item, key))

    def fact(self, name: str) -> Any:
        """A fact: `platform`, `country`, `locale`, `timezone` (`Europe/Vienna`), `app_version`, `external_id`, `identified`,
        `first_seen_at`, `last_seen_at`, `event_count`, `survey_interactions`, `message_interactions`, `held_back` or
        `merged_states`. `held_back` says by campaign (`campaign_id`) of which event the firing had no effect last.
        `merged_states` has by campaign `own`, what is kept of the subject, and `others`, what was kept of people who were
        merged into it since, in hexadecimal digits. It is as of before the batch: heed it while the state is still `own`;
        a state that is stored follows from all of them."""
        return _from_wit(self._host.subject_fact(self._item, name))

    @property
    def held_back(self) -> Optional[str]:
        """The id of the event whose firing of this campaign had no effect last: consent, a cap, quiet hours or the like.
        `None` is none."""
        known = self.fact("held_back")
        return known.get(self.campaign_id) if isinstance(known, dict) else None

    @property
    def merged_states(self) -> list:
        """What this campaign keeps of people who were merged into the subject, until a state is stored: that follows
        from all of them."""
        known = self.fact("merged_states")
        known = known.get(self.campaign_id) if isinstance(known, dict) else None
        # Facts are as of before the batch. A state that was stored since follows from all of them.
        own = self._host.get_state(self._number, self._item)
        if known is None or own is None or known.get("own") != own.hex():
            return []
        return [json.loads(bytes.fromhex(digits)) for digits in known["others"]]

    def count_events(
        self, name: str, within: Optional[timedelta] = None, at_most: int = 1000
    ) -> int:
        """How many earlier events of this name happened within a span (none: ever), up to `at_most`, 1,000 or less."""
        return self._host.count_events(self._item, name, self._since(within), at_most)

    def has_event(self, name: str, within: Optional[timedelta] = None) -> bool:
        """Whether an earlier event of this name happened within a span (none: ever)."""
        return self.count_events(name, within, 1) > 0

    def recent_events(
        self, name: str, within: Optional[timedelta] = None, limit: int = 200, properties=()
    ) -> list:
        """The earlier events of this name, newest first."""
        properties = list(properties)
        since = self._since(within)
        found = self._host.recent_events(self._item, name, since, limit, properties)
        return _history(found, properties)

    def random(self, n: int = 0) -> float:
        """Number `n` of the event's own random numbers, from 0 to 1: the same for the same event and campaign."""
        return _fraction(self._host.random(self._item, self._number, n))

    @property
    def state(self) -> Any:
        """What was last kept of the subject for this campaign; `None` is nothing."""
        state = self._host.get_state(self._number, self._item)
        return None if state is None else json.loads(state)

    @state.setter
    def state(self, value: Any) -> None:
        if value is None:
            self._host.clear_state(self._number, self._item)
        else:
            self._host.set_state(self._number, self._item, json.dumps(value).encode())

    def set_timer(self, key: str, ahead: Union[timedelta, datetime], payload: Any = None) -> None:
        """Sets a timer, in place of one with the same key: at an instant, or a span ahead. At most 90 days ahead; the
        past is now."""
        at = _micros(ahead if isinstance(ahead, datetime) else self.now + ahead)
        key = _text(key, "a timer's key")
        self._host.set_timer(self._number, self._item, key, at, json.dumps(payload).encode())

    def cancel_timer(self, key: str) -> None:
        self._host.cancel_timer(self._number, self._item, key)

    def cancel_timers(self) -> None:
        self._host.cancel_timers(self._number, self._item)

    def explain(self, check: str, passed: bool, detail: str = "") -> None:
        """Says why, for the person who asks."""
        if self._host.explaining():
            check, detail = _text(check, "a check"), _text(detail, "a check's detail")
            self._host.explain(self._number, self._item, check, passed, detail)


class _Batch:
    def __init__(self, host: Any):
        self._host = host
        self._subjects: Any = None
        self.names = host.names()
        self.name_indexes = host.name_indexes()
        self.timestamps = host.timestamps()
        self.received = host.received()
        self.sessions = host.sessions()
        self.timers = set(host.timer_items())

    @property
    def subjects(self) -> Any:
        if self._subjects is None:
            self._subjects = self._host.subjects()
        return self._subjects


class _Campaign:
    def __init__(self, host: Any, batch: _Batch, number: int, table: _Table):
        self.host = host
        self.batch = batch
        self.number = number
        self.table = table


class Trigger(_Plugin):
    """A plugin that decides which events fire a campaign."""

    def on_event(self, config: Any, event: Event, subject: Subject) -> bool:
        """Whether an event fires the campaign."""
        raise NotImplementedError

    def on_timer(self, config: Any, timer: Timer, subject: Subject) -> bool:
        """Whether a timer that is due fires the campaign."""
        return False

    def evaluate(self, batch: Any) -> None:
        self._decided(batch)

    def _decide(self, host: Any) -> None:
        batch = _Batch(host)
        for number in range(host.campaign_count()):
            config = json.loads(host.campaign_config(number))
            table = _Table(host.campaign_cells(number), self._reads(config).properties)
            campaign = _Campaign(host, batch, number, table)
            fired = []
            for row, item in enumerate(host.campaign_items(number)):
                event = Event(campaign, item, row)
                subject = Subject(campaign, event)
                if item in batch.timers:
                    payload = json.loads(host.timer_payload(item) or b"null")
                    timer = Timer(host.timer_key(item) or "", payload, event)
                    fires = _is_fired(self.on_timer(config, timer, subject), "on_timer")
                else:
                    fires = _is_fired(self.on_event(config, event, subject), "on_event")
                if fires:
                    fired.append(item)
            if fired:
                host.fire(number, fired)


class Violation:
    """One way in which an event breaks its definition."""

    def __init__(self, code: str, property: str = "", expected: str = "", actual: Any = ""):
        self.code = code
        self.property = property
        self.expected = expected
        self.actual = actual


class ValidatedEvent:
    """An event that is to be validated."""

    def __init__(self, host: Any, table: _Table, item: int, row: int, times: tuple):
        self._host = host
        self._table = table
        self._item = item
        self._row = row
        self._now, self._timestamps = times

    @property
    def now(self) -> datetime:
        """The time of the decision: when the batch's latest event reached the server."""
        return _instant(self._now)

    @property
    def timestamp(self) -> datetime:
        """When it happened, by the client's corrected clock."""
        return _instant(self._timestamps[self._item])

    def get(self, path: str) -> Any:
        """The property at a dotted path that `check` names; `MISSING` where there is none."""
        return self._table.get(self._row, path)

    def unread(self) -> list:
        """Names of properties that the event has and the configuration does not read."""
        return self._host.unread(self._item)

    def json(self) -> dict:
        """All properties. Slower than those that `check` names."""
        return json.loads(self._host.event_json(self._item))


class Validation(_Plugin):
    """A plugin that decides whether an event matches its definition."""

    def find(self, config: Any, event: ValidatedEvent) -> list:
        """Every `Violation` of an event."""
        raise NotImplementedError

    def validate(self, batch: Any) -> None:
        self._decided(batch)

    def _decide(self, host: Any) -> None:
        found = []
        times = (host.now(), host.timestamps())
        for number in range(host.definition_count()):
            config = json.loads(host.definition_config(number))
            table = _Table(host.definition_cells(number), self._reads(config).properties)
            for row, item in enumerate(host.definition_items(number)):
                event = ValidatedEvent(host, table, item, row, times)
                for violation in _answered(self.find(config, event), "find"):
                    found.append(
                        _Violation(
                            item,
                            _text(violation.code, "a violation's code"),
                            _text(violation.property, "a violation's property"),
                            _text(violation.expected, "a violation's expected"),
                            _shown(violation.actual),
                            [],
                        )
                    )
        if found:
            host.report(found)


class Resolution:
    """What one binding resolved to. Without a value, `issue` says why; without a `text`, the value stands as it was
    sent. `event` is the one that the value comes from, such as one of `Recipient.recent_events`."""

    def __init__(
        self,
        value: Any = MISSING,
        text: Optional[str] = None,
        used_fallback: bool = False,
        issue: str = "",
        detail: str = "",
        event: Optional[EventReference] = None,
    ):
        self.value = value
        self.text = text if text is not None else _shown(value)
        self.used_fallback = used_fallback
        self.issue = issue
        self.detail = detail
        self.event = event


class Recipient:
    """A recipient of a message."""

    def __init__(self, host: Any, item: int, row: int, tables: tuple, now: datetime):
        self._host = host
        self._item = item
        self._row = row
        self._subjects, self._triggers, self._data = tables
        self.now = now

    def get_property(self, key: str) -> Any:
        """A saved property that `check` names among `subject_properties`."""
        return self._subjects.get(self._row, key)

    def trigger(self, path: str) -> Any:
        """A property, named by `check`, of the event that caused the message."""
        return self._triggers.get(self._row, path)

    @property
    def trigger_event(self) -> Optional[EventReference]:
        """The event that caused the message; `None` where none did."""
        found = self._host.trigger_event(self._item)
        return None if found is None else EventReference(found[0], _instant(found[1]))

    def data(self, key: str) -> Any:
        """A value of the request that asks for the send, whose key `data_keys` names."""
        return self._data.get(self._row, key)

    def fact(self, name: str) -> Any:
        """A fact, as those of subjects."""
        return _from_wit(self._host.subject_fact(self._item, name))

    def random(self, n: int = 0) -> float:
        """Number `n` of the recipient's own random numbers, from 0 to 1: the same for the same recipient."""
        return _fraction(self._host.random(self._item, n))

    def recent_events(
        self, name: str, within: Optional[timedelta] = None, limit: int = 200, properties=()
    ) -> list:
        """The recipient's events of this name, newest first."""
        properties = list(properties)
        since = None if within is None else _micros(self.now - within)
        found = self._host.recent_events(self._item, name, since, limit, properties)
        return _history(found, properties)


def _origin(event: Optional[EventReference]) -> list:
    """The event that a value comes from, as a resolution names it."""
    if event is None:
        return []
    return [("event_id", _text(event.id, "an event's id")), ("timestamp", _iso(event.timestamp))]


class Personalization(_Plugin):
    """A plugin that resolves what the bindings of a message stand for."""

    def data_keys(self, config: Any) -> list:
        """The keys of the request's data that `Recipient.data` will ask for."""
        return []

    def values(self, config: Any, recipient: Recipient) -> dict:
        """A `Resolution` for each binding."""
        raise NotImplementedError

    def resolve(self, batch: Any) -> None:
        self._decided(batch)

    def _decide(self, host: Any) -> None:
        now = _instant(host.now())
        for number in range(host.message_count()):
            config = json.loads(host.message_config(number))
            declared = self._reads(config)
            keys = _texts(_answered(self.data_keys(config), "data_keys"), "data_keys")
            tables = (
                _Table(host.subject_cells(number), declared.subject_properties),
                _Table(host.trigger_cells(number), declared.properties),
                _Table(host.data_cells(number, keys), keys),
            )
            resolutions = []
            for row, item in enumerate(host.message_items(number)):
                recipient = Recipient(host, item, row, tables, now)
                values = _answered(self.values(config, recipient), "values")
                for binding, found in values.items():
                    resolutions.append(
                        _Resolution(
                            item,
                            _text(binding, "a binding"),
                            _to_wit(found.value),
                            _text(found.text, "a resolution's text"),
                            found.used_fallback,
                            _text(found.issue, "a resolution's issue"),
                            _text(found.detail, "a resolution's detail"),
                            _origin(found.event),
                        )
                    )
            if resolutions:
                host.resolve(resolutions)
