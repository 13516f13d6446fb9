"""What schemathesis does not know of Nudge: what exists, how components travel, which requests wait."""

import atexit
import collections
import itertools
import json
import os

import schemathesis
from hypothesis import strategies

# The names and ids of what exists, by the part of the path that precedes them: {"surveys": ["…"]}.
KNOWN = json.loads(os.environ["NUDGE_KNOWN"])
# What bodies name, by key.
NAMED = json.loads(os.environ["NUDGE_NAMED"])
# Apps to be deleted, one after another; one that is gone is as good as any other.
SPARE = itertools.cycle(KNOWN["spare-apps"])
# How often each operation answered each status; `api_fuzz.rs` reads it when the run is over.
ANSWERS = collections.defaultdict(collections.Counter)


@schemathesis.serializer("application/wasm")
def component(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook("flatmap_path_parameters")
def existing(ctx, path_parameters):
    """Names what exists in most requests: made-up ids lead to 404 and no further."""
    choices = {}
    parts = ctx.operation.path.split("/")
    for collection, part in zip(parts, parts[1:]):
        name = part.strip("{}")
        if part.startswith("{") and name in path_parameters:
            known = KNOWN.get(collection, [])
            # Mostly the app that exists: nothing else of a path matters under another.
            known = known * 8 if collection == "apps" else known
            choices[name] = strategies.sampled_from([*known, path_parameters[name]])
    return strategies.fixed_dictionaries(choices)


@schemathesis.hook
def map_body(ctx, body):
    """Names who and what exists in every other body, which would be refused for that alone."""
    if not isinstance(body, dict):
        return body
    size = len(repr(body))
    if ctx.operation.definition.raw.get("operationId") == "ingest_events" and size % 2:
        # As an SDK or a server asks; about the events anything goes.
        caller = {"userId": "ada"} if size % 4 == 1 else {"context": {"anonymousId": NAMED["anonymousId"]}}
        return {**caller, "events": body.get("events")}
    for key, known in NAMED.items():
        made_up = body.get(key)
        if isinstance(made_up, str) and len(made_up) % 2:
            body[key] = known
    return body


@schemathesis.hook
def before_call(ctx, case, **kwargs):
    """Deletes apps that are there for it. The one that all else is about stays, whatever made the request. Streams, which
    do not end, are asked to go on from nowhere."""
    if case.operation.definition.raw.get("operationId") == "stream_events":
        case.headers = {**(case.headers or {}), "Last-Event-ID": "none"}
    if case.operation.definition.raw.get("operationId") == "delete_app":
        kept = {identifier.lower() for identifier in KNOWN["apps"]}
        if str(case.path_parameters.get("appId", "")).lower() in kept:
            case.path_parameters["appId"] = next(SPARE)


@schemathesis.hook
def map_query(ctx, query):
    """Asks for no long polls."""
    if query and "wait" in query:
        query["wait"] = "0"
    return query


@schemathesis.hook
def after_call(ctx, case, response):
    operation = case.operation.definition.raw.get("operationId")
    ANSWERS[operation][str(response.status_code)] += 1


@atexit.register
def write_answers():
    with open(os.environ["NUDGE_ANSWERS"], "w") as file:
        json.dump(ANSWERS, file)
