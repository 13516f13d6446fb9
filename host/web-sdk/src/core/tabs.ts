import { newId } from "./util.js";

/**
 * The tabs of a browser that use the same app. One of them leads: it sends and polls. Where browsers give no locks, each
 * tab leads itself; event ids keep what is sent twice from counting twice.
 */
export class Tabs {
  readonly id = newId();
  leads?: boolean;
  private isAlone?: boolean;
  private release?: () => void;
  private channel?: BroadcastChannel;
  private waits?: AbortController;

  constructor(
    private readonly name: string,
    private readonly hear: (message: any) => void,
    private readonly lead: (leads: boolean) => void,
  ) {}

  /** Hears the other tabs. Keeps nothing. */
  listen(): void {
    if (this.channel || typeof BroadcastChannel != "function") return;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => this.hear(data);
  }

  /** Takes part, until the page goes away. */
  enter(): void {
    if (this.isAlone) return this.change(true);
    if (this.waits) return;
    this.waits = new AbortController();
    this.listen();
    if (navigator.locks) this.request({ signal: this.waits.signal });
    else this.change(true);
  }

  /** Goes on by itself, for good: what it keeps is not what other tabs keep. */
  part(): void {
    const isIn = !!this.waits;
    this.leave();
    this.isAlone = true;
    if (isIn) this.change(true);
  }

  /** Takes the lead from a tab that does not answer. */
  claim(): void {
    if (this.waits && navigator.locks && !this.leads) this.request({ steal: true });
  }

  private request(options: LockOptions): void {
    let mine = false;
    const held = () => {
      mine = true;
      this.change(true);
      return new Promise<void>((done) => (this.release = done));
    };
    navigator.locks.request(this.name, options, held).catch(({ name }) => {
      if (!this.waits) return;
      // A sandboxed frame gets no locks: it is by itself.
      if (name == "SecurityError") return this.change(true);
      // Another tab took the lead: this one queues for it again.
      if (!mine) return;
      this.change(false);
      this.request({ signal: this.waits.signal });
    });
  }

  /** Leaves: another tab leads. Pages that browsers keep for "back" hold nothing. */
  leave(): void {
    this.waits?.abort();
    this.release?.();
    // Nobody looks here any longer: what is offered now is for another tab.
    this.post({ t: "look", id: this.id });
    this.channel?.close();
    this.waits = this.release = this.channel = undefined;
    if (this.leads) this.change(false);
  }

  /** Tells the other tabs. */
  post(message: object): void {
    this.channel?.postMessage(message);
  }

  /** Tells all tabs, this one too. */
  tell(message: object): void {
    this.post(message);
    this.hear(message);
  }

  private change(leads: boolean): void {
    this.leads = leads;
    this.lead(leads);
  }
}
