import { ask, beacon } from "./net.js";
import { consented, isCold, stash, unstash } from "./notes.js";
import { Poller } from "./poller.js";
import { WebPush } from "./push.js";
import { context, Refused, Sender } from "./sender.js";
import { open, persist, Shows } from "./shows.js";
import { type Draft, type Me, type Person, PROPERTIES, type Said, write } from "./state.js";
import { databaseName, databaseStore, type Item, memoryStore, openDatabase, type Store } from "./store.js";
import { Tabs } from "./tabs.js";
import type { Client, EventProperties, Events, Options, Place, PropertyValue } from "./types.js";
import { iso, newId } from "./util.js";

/** What the SDK of a page is made with, besides its options. */
export interface Setup extends Options {
  baseUrl: string;
  /** Where the service worker is. */
  workerUrl: string;
  load: ConstructorParameters<typeof Shows>[0]["load"];
}

/** Events wait so long for others that go with them, in milliseconds. */
const TOGETHER = 250;
/** Events that wait for no others. */
const ENOUGH = 100;
/** Use of the page is noted this often, in milliseconds. */
const ACTIVE = 30_000;
/** A tab that leads answers within so many milliseconds. */
const UNHEARD = 5000;
/** How long `flush` waits for the tab that sends, in milliseconds. */
const FLUSH = 30_000;
/** Characters that browsers let a page leave behind (64 KiB), with room for other characters than ASCII. */
const MOST_BEACON = 20_000;

type Listeners = { [K in keyof Events]?: Set<(value: Events[K]) => void> };
type EventItem = Item & { kind: "event" };

export class Nudge implements Client {
  readonly push: WebPush;
  private readonly listeners: Listeners = {};
  private readonly drafts: Draft[] = [];
  /** How much this tab has said. */
  private said = 0;
  /** This tab's events of which nobody knows yet that the server has them. */
  private readonly unconfirmed = new Map<string, EventItem>();
  /** What the database is called, and what tabs share. */
  private readonly name: string;
  private readonly tabs: Tabs;
  private readonly sender: Sender;
  private readonly poller: Poller;
  private readonly shows: Shows;
  private store: Store = memoryStore();
  private isKept?: boolean;
  private me?: Me;
  private person?: Person;
  private started?: boolean;
  /** Whether the page goes away: what it still says may be written down no more. */
  private gone?: boolean;
  /** While it is looked up whether somebody consented before. What the page says waits for that. */
  private deciding?: Promise<void>;
  private ready?: Promise<void>;
  private writing?: Promise<void>;
  private screenName?: string;
  private timer?: ReturnType<typeof setTimeout>;
  private unheard?: ReturnType<typeof setTimeout>;
  private used = 0;
  /** What the tab that leads has for whoever looks, and who looks, the last one last. */
  private readonly held = new Map<string, [item: any, aid: string]>();
  private looking: string[] = [];
  /** Whose requests beside the queue are under way in this tab. */
  private readonly pending: string[] = [];
  /** Whether somebody who was not asked consents. */
  private readonly granted: boolean;
  private readonly idle = new Set<() => void>();
  /** The anonymous id of who is here now: a reset counts before it is written down. */
  private readonly aid = () => this.drafts.reduce((aid, draft) => (draft.kind == "reset" ? draft.id : aid), this.me?.aid);

  constructor(private readonly options: Setup) {
    this.granted = options.consent != "required";
    const { aid, emit, hold, request } = this;
    const page = this;
    const device = () => this.me?.device;
    this.name = databaseName(options.writeKey);
    this.tabs = new Tabs(this.name, this.hear, this.lead);
    this.sender = new Sender({
      ...options,
      aid,
      get store() {
        return page.store;
      },
      device,
      error: (error) => this.tabs.tell({ t: "error", error }),
      hold,
      person: (aid, person) => this.tabs.tell({ t: "person", aid, person }),
      answered: (ids) => this.tabs.tell({ t: "answered", ids }),
    });
    this.poller = new Poller(options, this.sender, hold);
    this.shows = new Shows({
      ...options,
      get locale() {
        return page.locale;
      },
      autoShow: options.autoShow ?? true,
      now: () => Date.now() + (this.person?.skew ?? 0),
      aid,
      maySee: () => !!this.started && this.maySee(),
      request,
      acknowledge: (ack, stays) => {
        const { instructionId: id } = ack;
        if (!stays) {
          this.tabs.post({ t: "shown", id });
          this.held.delete(id);
        }
        this.note({ kind: "call", method: "POST", path: "/v1/sdk/instructions/ack", body: { acks: [ack] } }, true);
      },
      change: (key, change) => this.store.change([key], ([value]) => ({ put: { [key]: change(value) } })).catch(() => {}),
      get: (key) => this.store.get(key).catch(() => undefined),
      emit,
    });
    this.push = new WebPush(options, {
      config: async () => {
        await this.settled();
        // A key may have been replaced since the session began.
        if (!this.me) throw new Error("no consent to messaging");
        const session = await this.sender.session(this.me.aid, undefined, true);
        if (session instanceof Refused) throw new Error(session.answer.message);
        return session.config?.push?.vapidPublicKey;
      },
      device,
      request,
      keep: (push) => this.note({ kind: "push", push }),
    });
    if (this.granted) this.start();
    else {
      this.deciding = this.decide();
      this.tabs.listen();
    }
  }

  // What pages call.

  track(name: string, properties?: EventProperties): string {
    // Before the id, so that a session that the event begins has an id before it.
    const at = Date.now();
    const id = newId();
    try {
      // A copy: what the page changes afterwards is not what happened.
      const copy = properties && JSON.parse(JSON.stringify(properties));
      const { locale, screenName: screen } = this;
      const isImmediate = this.person?.config?.immediateTriggers.includes(name);
      this.note({ kind: "event", at, id, name: String(name), properties: copy, screen, locale }, isImmediate);
    } catch (error) {
      this.emit("error", { code: "invalid_properties", message: String(error), eventId: id });
    }
    return id;
  }

  screen(name: string): string {
    // Whole characters, and none that is half of one: the server reads no others.
    const screenName = String(name).replace(/\p{Cs}/gu, "\ufffd");
    this.screenName = [...screenName].slice(0, 120).join("");
    return this.track("screen_viewed", { screenName });
  }

  identify(token: string): void {
    this.note({ kind: "identify", token: String(token) }, true);
  }

  reset(): void {
    this.shows.clear();
    this.note({ kind: "reset", id: newId() }, true);
    // Messages to who was here are not for who comes.
    this.push.forget();
  }

  consent({ analytics, messaging }: { analytics?: boolean; messaging?: boolean }): void {
    const said = { kind: "consent", analytics, messaging } as const;
    if (!this.started && !this.deciding) {
      if (analytics || messaging) {
        this.say(said);
        return this.start();
      }
      // Another tab may have been told of consent.
      this.deciding = this.decide();
    }
    this.note(said, true);
    if (messaging === false) this.shows.clear();
  }

  set(set: { [key: string]: PropertyValue }): void {
    this.alter({ set });
  }

  unset(unset: string[]): void {
    this.alter({ unset });
  }

  on<K extends keyof Events>(name: K, listener: (value: Events[K]) => void): () => void {
    const set: Set<any> = (this.listeners[name] ??= new Set<any>() as any);
    set.add(listener);
    return () => void set.delete(listener);
  }

  async present(instruction: Events["instruction"], place?: Place): Promise<void> {
    if (!this.maySee()) await this.settled();
    return this.shows.present(instruction, { ...place, asked: true });
  }

  async startSurvey(surveyId: string, place?: Place): Promise<void> {
    if (!this.maySee()) await this.settled();
    return this.shows.startSurvey(surveyId, { ...place, asked: true });
  }

  async flush(): Promise<void> {
    await this.deciding;
    if (!this.started) return;
    await this.writing;
    if (this.tabs.leads || !this.isKept) return this.sender.send();
    return new Promise((done) => {
      this.idle.add(done);
      setTimeout(done, FLUSH);
      this.urge();
    });
  }

  // Beginning.

  /** Resolves once it is known who is here and what they consented to. */
  private async settled(): Promise<void> {
    await this.deciding;
    await this.ready;
    await this.writing;
  }

  /** Begins with what the page has said since it consented, which may have been before. */
  private async decide(): Promise<void> {
    const isGiven = await consented(this.options.writeKey);
    this.deciding = undefined;
    if (!isGiven && !this.started) {
      const at = this.drafts.findIndex((draft) => draft.kind == "consent" && (draft.analytics || draft.messaging));
      this.drafts.splice(0, at < 0 ? this.drafts.length : at);
      if (at < 0) return;
    }
    this.start();
  }

  private start(): void {
    if (this.started) return;
    this.started = true;
    this.ready = this.open();
    const cold = isCold(this.name);
    // What earlier pages said comes first.
    this.drafts.unshift(...unstash(this.name));
    this.say(this.activity({ cold }));
    this.used = Date.now();
    this.note();
    void this.ready.then(() => {
      this.tabs.enter();
      this.look();
      return this.writing;
    }).then(() => this.shows.resume());
    for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => this.use(), true);
    addEventListener("online", () => {
      this.sender.hurry();
      this.go();
    });
    addEventListener("pagehide", () => {
      this.gone = true;
      this.depart();
      this.tabs.leave();
    });
    addEventListener("pageshow", async () => {
      if (!this.gone) return;
      this.gone = false;
      // What was said to other tabs while the browser kept the page.
      const me = await this.store.get("me").catch(() => {});
      await this.shows.recall();
      if (this.gone) return;
      if (me) this.hear({ t: "me", me });
      this.tabs.enter();
      this.look();
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.leave();
      else this.use();
      this.look();
    });
    // A session that nobody goes on with ends while the page is open, too.
    setInterval(() => this.tabs.leads && this.note(this.activity({ idle: true })), 60_000);
  }

  private async open(): Promise<void> {
    try {
      this.store = databaseStore(await openDatabase(this.options.writeKey));
      this.me = await this.store.get("me");
      this.person = this.me && (await this.store.get(`person:${this.me.aid}`));
      this.isKept = true;
    } catch (error) {
      this.degrade(error);
    }
  }

  /** Goes on in memory: the page works as long as it is open. */
  private degrade(error: unknown): void {
    const values = new Map<string, any>();
    if (this.me) values.set("me", this.me).set(`person:${this.me.aid}`, this.person);
    this.store = memoryStore(values);
    this.isKept = false;
    this.tabs.part();
    this.emit("error", { code: "storage_unavailable", message: String(error) });
  }

  // What the page says, in order.

  private alter(change: object): void {
    try {
      // A copy: the page may change its own, and a database does not take all that a page may have.
      const body = { mutationId: newId(), ...JSON.parse(JSON.stringify(change)) };
      this.note({ kind: "call", method: "POST", path: PROPERTIES, body });
    } catch (error) {
      this.emit("error", { code: "invalid_properties", message: String(error) });
    }
  }

  private say(said: Said): void {
    this.drafts.push({ ...said, tab: this.tabs.id, n: ++this.said });
  }

  private note(said?: Said, now = false): void {
    if (said && (this.started || this.deciding)) this.say(said);
    if (!this.started) return;
    // Browsers tell a page that it is hidden after they told it that it goes.
    if (this.gone) this.depart();
    this.writing ??= this.write().finally(() => (this.writing = undefined));
    const go = async () => {
      await this.writing;
      this.go();
    };
    if (now || this.drafts.length >= ENOUGH) void go();
    else this.timer ??= setTimeout(go, TOGETHER);
  }

  private async write(): Promise<void> {
    await this.ready;
    while (this.drafts.length) {
      const drafts = this.drafts.slice();
      const before = this.me?.aid;
      const awaited = this.aid();
      let written: ReturnType<typeof write> | undefined;
      const change = ([me]: (Me | undefined)[]) => (written = write(me, drafts, this.granted, this.person?.config)).change;
      try {
        await this.store.change(["me"], change);
      } catch (error) {
        if (!this.isKept) return;
        this.degrade(error);
        continue;
      }
      this.drafts.splice(0, drafts.length);
      const { me, add } = written!;
      this.me = me;
      // Another tab was told of a reset, and this one is not told yet.
      if (awaited && awaited != me.aid) this.shows.clear();
      for (const item of add) if (item.kind == "event") this.unconfirmed.set(item.event.eventId, item);
      const isSame = before == me.aid;
      if (!isSame) this.person = undefined;
      if (!isSame || drafts.some(({ kind }) => kind == "consent" || kind == "identify")) {
        this.tabs.post({ t: "me", me });
        this.repoll(!this.sender.prove() && isSame);
      }
    }
  }

  /** Has sent what is written. */
  private go(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.started) return;
    if (this.tabs.leads || !this.isKept) void this.send();
    else this.urge();
  }

  /** Has the tab that leads send. One that the browser has frozen does not answer: another leads then. */
  private urge(): void {
    this.tabs.post({ t: "go" });
    this.unheard ??= setTimeout(() => this.tabs.claim(), UNHEARD);
  }

  private async send(): Promise<void> {
    await this.sender.send();
    this.tabs.tell({ t: "idle" });
  }

  private activity(how?: { cold?: boolean; idle?: boolean }): Said {
    return { kind: "active", at: Date.now(), id: newId(), locale: this.locale, ...how };
  }

  private use(): void {
    const now = Date.now();
    if (Math.abs(now - this.used) < ACTIVE) return;
    this.used = now;
    this.note(this.activity());
  }

  /** Leaves behind what the page has said. */
  private depart(): void {
    stash(this.name, this.tabs.id, this.drafts);
    this.leave();
  }

  /** Sends what this tab alone knows, as it may not come back. */
  private leave(): void {
    const { me, person, options } = this;
    if (!me || !person?.token) return;
    const waiting = [...this.unconfirmed.values(), ...write(me, this.drafts, this.granted, person.config).add];
    for (let left = waiting.filter((item) => item.kind == "event" && item.aid == me.aid) as EventItem[]; left.length; ) {
      const first = left[0]!;
      let characters = 0;
      const run = left.filter(({ sid, event }) => sid == first.sid && (characters += JSON.stringify(event).length) < MOST_BEACON);
      if (!run.length) return;
      beacon(options, person.token, { context: context(first, me.device), events: run.map(({ event }) => event) });
      // Browsers limit what all requests leave behind together; the rest waits in the database.
      if (run.length < left.length && characters >= MOST_BEACON) return;
      left = left.filter((item) => !run.includes(item));
    }
  }

  /** Whether messaging was consented to. */
  private maySee(): boolean {
    return this.me?.messaging ?? this.granted;
  }

  // Tabs.

  private readonly hear = (message: any): void => {
    if (!this.started) {
      // Somebody consented in another tab.
      if (message.me?.analytics || message.me?.messaging) this.start();
      return;
    }
    switch (message.t) {
      case "go":
        if (!this.tabs.leads) break;
        this.tabs.post({ t: "heard" });
        void this.send();
        break;
      case "heard":
        clearTimeout(this.unheard);
        this.unheard = undefined;
        break;
      case "idle":
        for (const done of this.idle) done();
        this.idle.clear();
        break;
      case "answered":
        for (const id of message.ids) this.unconfirmed.delete(id);
        break;
      case "error":
        this.emit("error", message.error);
        break;
      case "person":
        if (message.aid == this.me?.aid) this.person = message.person;
        break;
      case "me":
        if (message.me.aid != this.me?.aid) {
          this.person = undefined;
          this.shows.clear();
        }
        this.me = message.me;
        this.sender.prove();
        if (!this.maySee()) this.shows.clear();
        this.repoll();
        break;
      case "who":
        this.look();
        break;
      case "look":
        this.sender.pending.set(message.id, message.asked);
        this.looking = this.looking.filter((id) => id != message.id);
        if (message.looks) this.looking.push(message.id);
        this.repoll(true);
        this.give();
        break;
      case "shown":
        this.held.delete(message.id);
        this.shows.withdraw(message.id);
        break;
      case "offer":
        if (message.to == this.tabs.id && message.aid == this.aid()) this.shows.offer(message.items);
        break;
    }
  };

  /** Says whether somebody looks at this tab, and for whom it asks. */
  private look(): void {
    this.tabs.tell({ t: "look", id: this.tabs.id, looks: !document.hidden, asked: this.pending });
  }

  private readonly lead = async (leads: boolean): Promise<void> => {
    if (leads) {
      this.tabs.tell({ t: "heard" });
      this.tabs.tell({ t: "who" });
      await this.writing;
      void this.send();
      this.repoll();
    } else {
      this.sender.stop();
      this.poller.stop();
      this.held.clear();
    }
  };

  /** Polls if this tab leads, somebody looks, and they may be shown something. */
  private repoll(goOn = false): void {
    const { me } = this;
    if (!this.tabs.leads || !this.looking.length || !me || !this.maySee()) this.poller.stop();
    else if (!goOn || !this.poller.stopped) this.poller.start(me.aid);
  }

  /** Keeps instructions for whoever looks at a tab. */
  private readonly hold = (items: any[], aid: string): void => {
    for (const item of items) this.held.set(item.instructionId, [item, aid]);
    this.give();
  };

  /** Gives what is held to the tab that somebody looked at last; it knows what it has been given. */
  private give(): void {
    const to = this.looking.at(-1);
    if (!to || !this.tabs.leads) return;
    for (const [item, aid] of this.held.values()) {
      if (aid == this.me?.aid) this.tabs.tell({ t: "offer", to, items: [item], aid });
    }
  }

  // Requests beside the queue.

  /** A request as who is here when it is made, again until it is answered. Rejects with what is final. */
  private readonly request = async (method: string, path: string, body: object, aid = this.aid()): Promise<any> => {
    const { pending, sender } = this;
    await this.settled();
    const anonymousId = aid ?? this.me!.aid;
    pending.push(anonymousId);
    this.look();
    const answer = await persist(async () => {
      const session = await sender.session(anonymousId);
      if (session instanceof Refused) return session.answer;
      const answer = await ask(this.options, method, path, { anonymousId, ...body }, session.token);
      return (await sender.isStale(anonymousId, answer, session.token)) ? { ...answer, status: 0 } : answer;
    }).finally(() =>
      // Later than the request that follows this one is made.
      setTimeout(() => {
        pending.splice(pending.indexOf(anonymousId), 1);
        this.look();
        // What waited for it.
        this.go();
      }),
    );
    const { status, code, message, errors, data } = answer;
    if (status > 299) throw { status, code, detail: message, errors };
    return data;
  };

  private get locale(): string {
    return this.options.locale ?? navigator.language ?? "en";
  }

  private readonly emit = <K extends keyof Events>(name: K, value: Events[K]): void => {
    this.listeners[name]?.forEach((listener) => {
      try {
        listener(value);
      } catch (error) {
        // The page's own fault, told as one of the page's.
        setTimeout(() => {
          throw error;
        });
      }
    });
  };
}

export { iso, open };
