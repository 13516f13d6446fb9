import type { Draft, Host, OpenAction, PresentOptions, Renderer } from "../surveys/host.js";
import { type Answer, isTemporary } from "./net.js";
import type { Instruction } from "./types.js";
import { backoff, iso, newId, pause } from "./util.js";

/** Instructions whose end is remembered. */
const MOST_ENDED = 200;
/** After so long the server counts an attempt as abandoned, in milliseconds. */
const DRAFT_LIFETIME = 1_800_000;

/** What showing things asks of the page. */
export interface Page {
  locale: string;
  container?: Element | string;
  autoShow: boolean;
  /** The server's clock. */
  now(): number;
  /** The anonymous id of now. */
  aid(): string | undefined;
  /** Whether the person may be shown anything. */
  maySee(): boolean;
  /** A request as somebody; rejects with what is final. */
  request(method: string, path: string, body: object, aid?: string): Promise<any>;
  /** `stays`: it is on offer as before. */
  acknowledge(ack: { instructionId: string; status: string; actionId?: string; at: string }, stays: boolean): void;
  change(key: string, change: (value: any) => any): Promise<void>;
  get(key: string): Promise<any>;
  emit(name: any, value: any): void;
  load(): Promise<{ createRenderer(host: Host): Renderer }>;
}

/** Whether an address may be followed: those that run nothing. */
const isSafe = (url: URL) => !/^(javascript|data|vbscript|blob|file):$/.test(url.protocol);

/** Resolves once the page has a body to show something in. */
const body = async () => document.body || new Promise((done) => addEventListener("DOMContentLoaded", done));

/** Shows instructions in this tab. */
export class Shows {
  private renderer?: Promise<Renderer>;
  /** Instructions that this tab was offered, by id: each as it was last. */
  private readonly offered = new Map<string, Instruction>();
  private readonly ended = new Set<string>();
  private pending: Promise<unknown> = Promise.resolve();
  private host: Host;

  constructor(private readonly around: Page) {
    this.host = this.makeHost();
  }

  /** Remembers what ended in earlier pages, and goes on with what a reload interrupted. */
  async resume(): Promise<void> {
    await this.recall();
    const drafts: { [id: string]: Draft & { aid: string } } = (await this.around.get("drafts")) ?? {};
    for (const draft of Object.values(drafts)) {
      const { aid, at, instruction, unsent } = draft;
      const isMine = aid == this.around.aid();
      // What was answered is sent, whenever that is, and as who answered it.
      if (!unsent && (!isMine || at + DRAFT_LIFETIME < Date.now())) this.host.keep(instruction.instructionId, null);
      else if (!isMine) this.around.load().then((made) => made.createRenderer(this.makeHost(aid)).finish(draft)).catch(() => {});
      else if (this.around.maySee()) this.say(instruction);
    }
  }

  /** Takes back what ended in other pages meanwhile. */
  async recall(): Promise<void> {
    for (const id of (await this.around.get("ended")) ?? []) if (!this.ended.has(id)) this.withdraw(id);
  }

  /** Offers instructions that are for this tab, and for who is here. */
  offer(items: Instruction[]): void {
    for (const instruction of items) {
      const { instructionId: id, campaignVersion: version, expiresAt: end } = instruction;
      const known = this.offered.get(id);
      // A feedback button is offered anew with each version of its survey, and for longer before it expires.
      if (known && known.campaignVersion >= version && known.expiresAt >= end) continue;
      // What may not be shown counts as not offered.
      if (!this.host.onOffer(instruction)) continue;
      this.offered.set(id, instruction);
      this.say(instruction);
    }
  }

  /** Tells the page of what may be shown, and shows it unless the page does so itself. */
  private say(instruction: Instruction): void {
    this.around.emit("instruction", instruction);
    if (this.around.autoShow) void this.present(instruction, {});
  }

  /** Another tab showed or ended something. Where the renderer can't be loaded nothing is shown. */
  withdraw(id: string): void {
    this.ended.add(id);
    void this.renderer?.then((renderer) => renderer.withdraw(id)).catch(() => {});
  }

  /** Takes everything away. What was answered is still sent, as who answered it. */
  clear(): void {
    this.offered.clear();
    void this.renderer?.then((renderer) => renderer.clear()).catch(() => {});
    this.renderer = undefined;
    this.host = this.makeHost();
  }

  present(instruction: Instruction, options: PresentOptions): Promise<void> {
    return this.with((renderer) => renderer.present(instruction, options), instruction);
  }

  startSurvey(surveyId: string, options: PresentOptions): Promise<void> {
    return this.with((renderer) => renderer.startSurvey(surveyId, options));
  }

  private async with(show: (renderer: Renderer) => Promise<unknown>, instruction?: Instruction): Promise<void> {
    const { host, around } = this;
    if (!around.maySee()) return around.emit("error", { code: "consent_required", message: "no consent to messaging", instruction });
    try {
      this.renderer ??= body().then(around.load).then((made) => made.createRenderer(host));
      // Loaded again with the next instruction; this one stays on offer.
      this.renderer.catch(() => (this.renderer = undefined));
      await show(await this.renderer);
    } catch (error) {
      if (instruction) this.offered.delete(instruction.instructionId);
      around.emit("error", { code: "show_failed", message: String(error), instruction });
    }
  }

  /** A renderer's host: that of one person, the first one it hears of. */
  private makeHost(mine?: string): Host {
    const { around, ended } = this;
    const aid = () => (mine ??= around.aid());
    /** Asks in order; what may work later is asked again. */
    const ask = (kind: string, id: string, rest: string, body: object = {}): Promise<any> => {
      const as = aid();
      const next = this.pending.then(() => around.request("POST", `/v1/sdk/${kind}/${encodeURIComponent(id)}/${rest}`, body, as));
      this.pending = next.catch(() => {});
      return next;
    };
    return {
      get locale() {
        return around.locale;
      },
      container: around.container,
      newId,
      now: around.now,
      onOffer: ({ instructionId, expiresAt }) =>
        around.maySee() &&
        !ended.has(instructionId) &&
        !(Date.parse(expiresAt) < around.now()) &&
        aid() == around.aid(),
      acknowledge({ instructionId, kind }, status, actionId) {
        const isButton = kind == "feedback";
        if (!isButton) {
          ended.add(instructionId);
          void around.change("ended", (ids: string[] = []) =>
            [...ids.filter((id) => id != instructionId), instructionId].slice(-MOST_ENDED),
          );
        }
        around.acknowledge({ instructionId, status, actionId, at: iso(around.now()) }, isButton);
      },
      start: (id, from) => ask("surveys", id, "attempts", from),
      answer: (id, answers) => ask("attempts", id, "answers", { answers }).then((data) => data.next),
      complete: (id) => ask("attempts", id, "complete"),
      dismiss: (id) => ask("attempts", id, "dismiss"),
      open,
      draft: async (id) => {
        const draft = (await around.get("drafts"))?.[id];
        return draft?.aid == aid() ? draft : null;
      },
      keep: (id, draft) =>
        void around.change("drafts", (drafts = {}) => {
          const { [id]: _, ...others } = drafts;
          return draft ? { ...others, [id]: { ...draft, aid: aid() } } : others;
        }),
      tell: (event, detail) => around.emit(event, detail),
    };
  }
}

/** Tells the app of an action. Answers whether it prevents nothing. */
export const announce = (detail: unknown): boolean =>
  dispatchEvent(new CustomEvent("nudge:action", { cancelable: true, detail }));

/**
 * Opens an action. The app hears of it first, as an event `nudge:action` of the window, and may prevent what follows:
 * addresses of the page's own origin are gone to, others open beside it.
 */
export function open(action: OpenAction): void {
  if (!announce(action) || !action.url) return;
  let url: URL;
  try {
    url = new URL(action.url, location.href);
  } catch {
    return;
  }
  const isWeb = /^https?:$/.test(url.protocol);
  if (action.action == "url" ? !isWeb : action.action != "deep_link" || !isSafe(url)) return;
  if (isWeb && url.origin != location.origin) window.open(url, "_blank", "noopener");
  else location.assign(url);
}

/** Asks again as long as that may help; answers the last answer. */
export async function persist(ask: () => Promise<Answer>): Promise<Answer> {
  for (let failures = 0; ; failures++) {
    const answer = await ask();
    if (!isTemporary(answer, failures)) return answer;
    await pause(Math.max(answer.retryAfter, backoff(failures)));
  }
}
