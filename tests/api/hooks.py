"""What schemathesis does not know of Nudge: what exists, how components travel, which requests wait."""

import itertools
import json
import os

import schemathesis
from hypothesis import strategies

# The names and ids of what exists, by the part of the path that precedes them: {"surveys": ["…"]}.
KNOWN = json.loads(os.environ["NUDGE_KNOWN"])
# Apps to be deleted, one after another; one that is gone is as good as any other.
SPARE = itertools.cycle(KNOWN["spare-apps"])


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
def before_call(ctx, case, **kwargs):
    """Deletes apps that are there for it. The one that all else is about stays, whatever made the request."""
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
