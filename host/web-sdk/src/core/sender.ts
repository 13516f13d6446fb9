import { type Answer, ask, type Credentials, isSpoiled, isTemporary } from "./net.js";
import type { Person } from "./state.js";
import type { Item, Row, Store } from "./store.js";
import type { NudgeError } from "./types.js";
import { backoff, iso, newId } from "./util.js";

/** Events of one request. */
const MOST_EVENTS = 100;
/** Characters of one request: three bytes each at the most, under the server's limit of 1 MiB. */
const MOST_CHARACTERS = 300_000;
/** Events that may fire something at once. */
const MOST_IMMEDIATE = 20;
/** How much of what waits is looked through for who somebody is. */
const MOST_SEARCHED = 10_000;
/**
 * How long the session of somebody who is gone waits for a page that sends what they answered, in milliseconds: after the
 * last answer, and after this page began.
 */
const GRACE = 60_000;
/** A token is renewed so long before it ends, in milliseconds. */
const MARGIN = 60_000;

type Event = Item & { kind: "event" };
type Identify = Item & { kind: "identify" };

/** What sending asks of the page. */
export interface Surroundings extends Credentials {
  /** The store of now. */
  readonly store: Store;
  /** The anonymous id of now. */
  aid(): string | undefined;
  device(): string | undefined;
  identity?: () => Promise<string | null>;
  error(error: NudgeError): void;
  hold(items: any[], aid: string): void;
  person(aid: string, person: Person): void;
  /** Events that the server has answered for. */
  answered(eventIds: string[]): void;
}

/** Why there is no session: what to say of it, and whether it may change. */
export class Refused {
  constructor(
    readonly answer: Answer,
    readonly isFinal: boolean,
    /** The proof that was sent of who it is. */
    readonly proof?: string,
  ) {}
}

/** Sends what waits, in order. */
export class Sender {
  private sending?: Promise<void>;
  /** Whose requests beside the queue are under way, by tab. */
  readonly pending = new Map<string, string[] | undefined>();
  private again?: boolean;
  private failures = 0;
  private notBefore = 0;
  /** Whether the server asked for the pause. */
  private bound?: boolean;
  /** Whether what waits does so for somebody to say who they are, and not because the server asked it to. */
  private unproven?: boolean;
  private timer?: ReturnType<typeof setTimeout>;
  private readonly starting = new Map<string, Promise<Person | Refused>>();
  /** Complaints that were made once, and are not made again until something works. */
  private readonly complaints = new Set<string>();
  /** When the page began. */
  private readonly since = Date.now();
  /** Events of a request; fewer after one was refused. */
  private most = MOST_EVENTS;

  constructor(private readonly around: Surroundings) {}

  /** Sends until nothing waits or the server can't be reached; then not before it may be asked again. */
  async send(): Promise<void> {
    if (Date.now() < this.notBefore) return;
    this.again = true;
    this.sending ??= this.run().finally(() => (this.sending = undefined));
    return this.sending;
  }

  /** The network is back: what waits is tried at once, unless the server asked it to wait. */
  hurry(): void {
    if (!this.bound) this.notBefore = this.failures = 0;
  }

  /** Somebody said who they are. Answers whether something waited for that: it is tried at once. */
  prove(): boolean | undefined {
    if (this.unproven) this.hurry();
    return this.unproven;
  }

  stop(): void {
    clearTimeout(this.timer);
    this.notBefore = 0;
    this.again = false;
  }

  private async run(): Promise<void> {
    try {
      while (this.again) {
        this.again = false;
        clearTimeout(this.timer);
        const head = await this.around.store.head(this.most);
        const drafts: { [id: string]: any } = (head.some(isEnd) && (await this.around.store.get("drafts"))) || {};
        // A session does not end before what its person said is said. Answers that are left are sent soon, or by nobody.
        const pending = [...this.pending.values()].flat();
        let grace: number | undefined;
        for (const { aid, at, unsent } of Object.values(drafts)) {
          const left = Math.max(at, this.since) + GRACE - Date.now();
          if (unsent && left > 0) {
            // The oldest draft comes first.
            grace ||= left;
            pending.push(aid);
          }
        }
        const rows = head.filter((row) => !isEnd(row) || !pending.includes(row[1].aid));
        if (rows.length) {
          this.unproven = this.bound = false;
          const wait = await this.deliver(rows);
          if (wait != undefined) return this.later(wait);
          this.again = true;
          this.failures = 0;
          this.complaints.clear();
        } else if (grace) {
          this.timer = setTimeout(() => this.send(), grace);
        }
      }
    } catch {
      // The database of a page that goes away.
      this.later(0);
    }
  }

  private later(wait: number): void {
    const pause = Math.max(wait, backoff(this.failures++));
    this.notBefore = Date.now() + pause;
    this.timer = setTimeout(() => {
      this.notBefore = 0;
      void this.send();
    }, pause);
  }

  /** Delivers the first of what waits; answers how long to wait if it did not work. */
  private async deliver(rows: Row[]): Promise<number | undefined> {
    const [key, item] = rows[0]!;
    if (item.kind == "end") return this.end(key, item.aid);
    const person = await this.session(item.aid, (item as Partial<Identify>).token);
    if (person instanceof Refused) {
      // A proof of who it is that is no good goes first, so that what waits does not wait for it.
      const proof = person.isFinal && (await this.proof(item.aid));
      return this.refused(person, ...(proof && proof[1].token == person.proof ? proof : rows[0]!));
    }
    if (item.kind == "identify") return this.remove([key]);
    if (item.kind == "event") return this.events(rows, item, person);
    const answer = await ask(this.around, item.method, item.path, item.body, person.token);
    const wait = await this.delay(answer, person, key, item);
    if (wait != undefined) return wait;
    // What is to go and is not there is gone.
    if (answer.status > 299 && (answer.status != 404 || item.method != "DELETE")) this.around.error(told(answer));
    return this.remove([key]);
  }

  /** How long to wait where the answer says nothing of what was sent. */
  private async delay(answer: Answer, { token }: Person, key: number, item: Item): Promise<number | undefined> {
    if (await this.isStale(item.aid, answer, token)) return 0;
    if (isTemporary(answer, this.failures)) return this.temporary(answer);
    // A key or a token that does not work now.
    if (answer.status == 401) return this.refused(new Refused(answer, false), key, item);
    return undefined;
  }

  /** There is no session for what is first. */
  private refused({ answer, isFinal }: Refused, key: number, item: Item): number | undefined | Promise<undefined> {
    if (isTemporary(answer)) return this.temporary(answer);
    if (isFinal && (item.kind == "identify" || item.aid != this.around.aid())) {
      const eventId = (item as Partial<Event>).event?.eventId;
      this.around.error({ ...told(answer), eventId });
      if (eventId) this.around.answered([eventId]);
      return this.remove([key]);
    }
    this.complain(answer);
    this.unproven = true;
    return 30_000;
  }

  private temporary(answer: Answer): number {
    if (answer.status) this.complain(answer);
    this.bound = answer.retryAfter > 0;
    return answer.retryAfter;
  }

  /** Tells of an answer, once until something works. */
  private complain(answer: Answer): void {
    if (this.complaints.has(answer.code)) return;
    this.complaints.add(answer.code);
    this.around.error(told(answer));
  }

  private async remove(remove: number[]): Promise<undefined> {
    await this.around.store.change([], () => ({ remove }));
    return undefined;
  }

  /** Sends the first events that are of one person and session. */
  private async events(rows: Row[], first: Event, person: Person): Promise<number | undefined> {
    const run: [number, Event][] = [];
    let characters = 0;
    for (const [key, item] of rows) {
      const { aid, sid, event } = item as Event;
      // Nothing else has a session.
      if (aid != first.aid || sid != first.sid) break;
      characters += JSON.stringify(event).length;
      if (run.length && characters > MOST_CHARACTERS) break;
      run.push([key, item as Event]);
    }
    const immediate = run.filter(([, item]) => person.config?.immediateTriggers.includes(item.event.name)).slice(-MOST_IMMEDIATE);
    const delivery = immediate.length
      ? {
          eventIds: immediate.map(([, item]) => item.event.eventId),
          screenName: immediate.at(-1)![1].screen,
          clientId: person.client,
        }
      : undefined;
    const body = {
      context: context(first, this.around.device()),
      events: run.map(([, item]) => item.event),
      delivery,
    };
    const answer = await ask(this.around, "POST", "/v1/sdk/ingest", body, person.token);
    const wait = await this.delay(answer, person, run[0]![0], first);
    if (wait != undefined) return wait;
    // One of them spoils the request: it is found by halves.
    if (isSpoiled(answer) && run.length > 1) {
      this.most = Math.ceil(run.length / 2);
      return undefined;
    }
    let errors: any[] = run.map((_, index) => ({ index, ...told(answer) }));
    if (answer.status < 300) {
      this.most = MOST_EVENTS;
      errors = answer.data.errors;
    }
    const kept = new Set<number>();
    for (const { index, code, message, retryable } of errors) {
      const eventId = run[index]?.[1].event.eventId;
      if (retryable) kept.add(index);
      // What the SDK noted itself may be too old for the server: the page never tracked it. Its id is one of `idOf`.
      else if (code != "timestamp_out_of_window" || !eventId?.startsWith("00", 15)) this.around.error({ code, message, eventId });
    }
    const gone = run.filter((_, index) => !kept.has(index));
    await this.remove(gone.map(([key]) => key));
    this.around.answered(gone.map(([, item]) => item.event.eventId));
    if (answer.data?.instructions?.length) this.around.hold(answer.data.instructions, first.aid);
    return kept.size ? 0 : undefined;
  }

  /** Ends the session of somebody who is gone. */
  private async end(key: number, aid: string): Promise<number | undefined> {
    const person: Person | undefined = await this.around.store.get(`person:${aid}`);
    if (person?.token) {
      const answer = await ask(this.around, "DELETE", "/v1/sdk/session", { clientId: person.client }, person.token);
      if (isTemporary(answer, this.failures)) return this.temporary(answer);
    }
    await this.keep(aid);
    return this.remove([key]);
  }

  /** Whether the token was refused: a new session is asked for with the next request. */
  async isStale(aid: string, { code }: Answer, token?: string): Promise<boolean> {
    const ended = code == "client_session_invalid";
    if (!ended && !code.startsWith("subject_token")) return false;
    await this.around.store.change([`person:${aid}`], ([person]) => {
      // Somebody may have signed in meanwhile: the token of now is another one.
      if (person?.token != token) return;
      const changed = { ...person, expires: 0, client: ended ? newId() : person?.client };
      return { put: { [`person:${aid}`]: changed } };
    });
    return true;
  }

  /** Somebody's session: the one there is, or a new one. `anew`: with the server's configuration of now. */
  async session(aid: string, identity?: string, anew?: boolean): Promise<Person | Refused> {
    const person: Person | undefined = await this.around.store.get(`person:${aid}`);
    if (!anew && !identity && person?.token && person.expires! - Date.now() - person.skew > MARGIN) return person;
    const starting = !identity && this.starting.get(aid);
    if (starting) return starting;
    const began = this.start(aid, person, identity);
    const end = () => {
      if (this.starting.get(aid) == began) this.starting.delete(aid);
    };
    // As long as the server asks to wait, its word is what whoever asks is told.
    began.then((known) => {
      const wait = (known as Partial<Refused>).answer?.retryAfter ?? 0;
      if (wait > 0) setTimeout(end, wait);
      else end();
    }, end);
    this.starting.set(aid, began);
    return began;
  }

  private keep(aid: string, person?: Person): Promise<void> {
    return this.around.store.change([], () => ({ put: { [`person:${aid}`]: person } }));
  }

  /** The first thing that waits that says who somebody is. */
  private async proof(aid: string): Promise<[number, Identify] | undefined> {
    const rows = await this.around.store.head(MOST_SEARCHED);
    return rows.find(([, item]) => item.kind == "identify" && item.aid == aid) as [number, Identify] | undefined;
  }

  private async start(aid: string, before: Person | undefined, identity?: string): Promise<Person | Refused> {
    // Whatever the page's function answers or throws, at once or later.
    const page = async () => identity || (aid == this.around.aid() && this.around.identity?.());
    let identityToken = (await page().catch(() => {})) || undefined;
    const person: Person = { skew: 0, ...before, client: before?.client ?? newId() };
    // A page that goes before the answer has begun no other browser session than the next one.
    if (!before) await this.keep(aid, person);
    for (let tries = 0; ; tries++) {
      const body = { anonymousId: aid, platform: "web", sdkVersion: __VERSION__, identityToken, clientId: person.client };
      const answer = await ask(this.around, "POST", "/v1/sdk/session", body, person.token);
      const { status, code, data } = answer;
      if (status < 300 && data) {
        person.token = data.subjectToken;
        person.expires = Date.parse(data.expiresAt);
        person.skew = Date.parse(data.serverTime) - Date.now();
        person.identified = data.subject.identified;
        person.config = data.sdkConfig;
        await this.keep(aid, person);
        this.around.person(aid, person);
        return person;
      }
      if (code == "identity_required" && !identityToken && (identityToken = (await this.proof(aid))?.[1].token)) continue;
      if (tries < 2 && code == "client_session_invalid") person.client = newId();
      else if (tries < 2 && code.startsWith("subject_token")) person.token = undefined;
      else return new Refused(answer, !isTemporary(answer), identityToken);
    }
  }
}

const isEnd = ([, { kind }]: Row): boolean => kind == "end";

/** An answer as the page is told of it. */
export const told = ({ code, message, status }: Answer): NudgeError => ({ code, message, status });

/** The context of a request with an event, and of those that go with it. */
export const context = ({ aid, sid, locale }: Event, deviceId?: string) => ({
  anonymousId: aid,
  platform: "web",
  sdkVersion: __VERSION__,
  locale,
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  sentAt: iso(Date.now()),
  deviceId,
  sessionId: sid,
});
