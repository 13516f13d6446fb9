# Sends messages with Segment's client for Python, as it is; as client.mjs does.
import json
import sys

from segment.analytics.client import Client

asked = json.load(sys.stdin)
errors = []
names = {"anonymousId": "anonymous_id", "userId": "user_id", "groupId": "group_id", "previousId": "previous_id"}
client = Client(
    asked["key"],
    host=asked["host"],
    gzip=True,
    upload_size=asked["flushAt"],
    upload_interval=0.2,
    max_retries=10,
    on_error=lambda error, items: errors.append(str(error)),
)
for message in asked["messages"]:
    call = getattr(client, message.pop("call"))
    try:
        call(**{names.get(name, name): value for name, value in message.items()})
    except RuntimeError as error:  # The client itself refuses what is too large.
        errors.append(str(error)[:200])
client.flush()
client.join()
print(json.dumps(errors))
