import { type Answer, ask, type Credentials } from "./net.js";
import { Refused, type Sender } from "./sender.js";
import { backoff, pause } from "./util.js";

/** How long the server may keep a poll, in seconds. */
const WAIT = 25;
/** A poll that took longer, half of that, was kept open; in milliseconds. */
const KEPT = 12_500;
/** Milliseconds between polls of a server that answers at once, unless it says otherwise. */
const POLL_AFTER = 30_000;

/** Asks for instructions as long as somebody looks at the page. */
export class Poller {
  /** Ends the polling that is under way. */
  stopped?: AbortController;
  /** Resolves once the server may be asked again, whoever looks at the page meanwhile. */
  private until?: Promise<void>;

  constructor(
    private readonly options: Credentials,
    private readonly sender: Sender,
    private readonly offer: (items: any[], aid: string) => void,
  ) {}

  /** Polls for somebody, from the beginning. */
  start(aid: string): void {
    this.stop();
    this.stopped = new AbortController();
    void this.run(aid, this.stopped.signal);
  }

  stop(): void {
    this.stopped?.abort();
    this.stopped = undefined;
  }

  private async run(aid: string, signal: AbortSignal): Promise<void> {
    let cursor = "";
    // What they have said comes first: to who has not consented yet, as far as the server knows, nothing is offered.
    await this.sender.send();
    for (let failures = 0, wait = 0; ; ) {
      await pause(wait, signal);
      await this.until;
      if (signal.aborted) return;
      const begun = Date.now();
      const person = await this.sender.session(aid).catch(() => undefined);
      if (signal.aborted) return;
      wait = backoff(failures++);
      const heed = ({ retryAfter }: Answer) => (this.until = pause(retryAfter));
      if (person instanceof Refused) heed(person.answer);
      else if (person) {
        const query = `wait=${WAIT}&limit=20${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
        const answer = await ask(this.options, "GET", `/v1/sdk/instructions?${query}`, undefined, person.token, signal);
        if (signal.aborted) return;
        if (answer.status == 200 && answer.data?.items) {
          const { items, nextCursor, pollAfterSeconds } = answer.data;
          cursor = nextCursor;
          failures = 0;
          if (items.length) this.offer(items, aid);
          // A poll that was kept open is followed by the next; a server that keeps none says how long to wait.
          wait = items.length || Date.now() - begun > KEPT ? 0 : 1000 * pollAfterSeconds || POLL_AFTER;
        } else if (await this.sender.isStale(aid, answer, person.token)) {
          // At once with a new token, but not for ever.
          if (failures < 3) wait = 0;
        } else {
          if (answer.status == 400) cursor = "";
          heed(answer);
        }
      }
    }
  }
}
