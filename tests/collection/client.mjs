// Sends messages with the clients of Segment and RudderStack, as they are. Reads {client, host, path, key, messages} from
// standard input, each message with its `call`; prints what the client says went wrong, as a list in JSON.
import { readFileSync } from 'node:fs'
import { Analytics } from '@segment/analytics-node'
import * as rudder from '@rudderstack/rudder-sdk-node'

const asked = JSON.parse(readFileSync(0, 'utf8'))
const errors = []

if (asked.client === 'segment') {
  const analytics = new Analytics({
    writeKey: asked.key,
    host: asked.host,
    path: asked.path,
    flushAt: asked.flushAt,
    flushInterval: 200,
    maxRetries: 10,
  })
  analytics.on('error', (error) => errors.push(String(error.reason?.message ?? error)))
  for (const { call, ...message } of asked.messages) analytics[call](message)
  await analytics.closeAndFlush({ timeout: 60_000 })
} else {
  const Client = rudder.RudderAnalytics ?? rudder.default?.RudderAnalytics ?? rudder.default?.default ?? rudder.default
  const client = new Client(asked.key, {
    dataPlaneUrl: asked.host,
    flushAt: asked.flushAt,
    flushInterval: 200,
    retryCount: 10,
    errorHandler: () => {},
  })
  const said = asked.messages.map(({ call, ...message }) => new Promise((resolve) => {
    client[call](message, (error) => {
      if (error) errors.push(String(error.message ?? error))
      resolve()
    })
  }).catch((error) => errors.push(String(error.message ?? error))))
  await client.flush().catch(() => {})
  await Promise.all(said)
}
console.log(JSON.stringify(errors))
process.exit(0)
