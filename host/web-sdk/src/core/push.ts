import { announce } from "./shows.js";
import type { Push, PushState } from "./types.js";

/** What Web Push asks of the page. */
export interface Around {
  /** The app's public key of now, which the server gives with a session. Rejects where there is no session. */
  config(): Promise<string | undefined>;
  device(): string | undefined;
  request(method: string, path: string, body: object): Promise<any>;
  /** Keeps for all tabs whether the server may have a token of the browser. */
  keep(push: boolean): void;
}

const SCOPE = "/nudge/";

/** Bytes of URL-safe Base64. */
const bytes = (text: string) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));

/** The page's service workers: some browsers have none, and a sandboxed frame may not ask. */
function workers(): ServiceWorkerContainer | undefined {
  try {
    return navigator.serviceWorker;
  } catch {}
}

/** Web Push, in a service worker of its own scope beside whatever worker the page has. */
export class WebPush implements Push {
  state: PushState = "unsupported";

  constructor(
    private readonly options: { baseUrl: string; writeKey: string; workerUrl: string },
    private readonly around: Around,
  ) {
    if (!workers() || typeof PushManager != "function" || typeof Notification != "function") return;
    this.state = Notification.permission == "denied" ? "denied" : "default";
    // What a message's click asks of the app, as buttons do.
    navigator.serviceWorker.addEventListener("message", ({ data }) => {
      if (data?.nudge) announce(data.nudge);
    });
    void this.find()
      .then((registration) => this.note(registration))
      // Versions before kept nothing when somebody subscribed.
      .then(() => this.state == "subscribed" && around.keep(true))
      .catch(() => {});
  }

  async subscribe(): Promise<PushState> {
    if (this.state == "unsupported") return this.state;
    // First, as browsers ask only amid a click.
    const permission = await Notification.requestPermission();
    if (permission != "granted") {
      if (permission == "denied") await this.register({ permission });
      return (this.state = permission);
    }
    const key = await this.around.config();
    if (!key) throw new Error("no web credential");
    const { baseUrl, writeKey, workerUrl } = this.options;
    const url = new URL(workerUrl, location.href);
    url.searchParams.set("key", writeKey);
    url.searchParams.set("server", baseUrl);
    const registration = await navigator.serviceWorker.register(url, { scope: SCOPE });
    await active(registration);
    const applicationServerKey = bytes(key);
    const subscribe = () => registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    // A subscription with another key than the app's of now is of no use.
    const subscription = await subscribe().catch(async () => {
      await (await registration.pushManager.getSubscription())?.unsubscribe();
      return subscribe();
    });
    this.around.keep(true);
    await this.register({ permission, subscription: subscription.toJSON() });
    return (this.state = "subscribed");
  }

  async unsubscribe(): Promise<PushState> {
    await this.end(() =>
      this.around
        .request("DELETE", `/v1/sdk/push-tokens/${this.around.device()}`, {})
        .catch((refusal) => {
          if (refusal.status != 404) throw refusal;
        })
        .then(() => this.around.keep(false)),
    );
    return this.state;
  }

  /** Ends the browser's subscription; the server hears of it otherwise. */
  forget(): void {
    void this.end().catch(() => {});
  }

  /** Ends the browser's subscription, where there is one. `first`: what comes before it. */
  private async end(first?: () => Promise<void>): Promise<void> {
    const registration = await this.find();
    const subscription = await registration?.pushManager.getSubscription();
    if (subscription) {
      await first?.();
      await subscription.unsubscribe();
    }
    await this.note(registration);
  }

  private register(how: object): Promise<any> {
    const body = { deviceId: this.around.device(), provider: "webpush", ...how };
    return this.around.request("POST", "/v1/sdk/push-tokens", body);
  }

  private async find(): Promise<ServiceWorkerRegistration | undefined> {
    const found = await workers()?.getRegistration(SCOPE);
    // Without a worker of its own, a browser answers with the one of the whole page.
    return found && new URL(found.scope).pathname == SCOPE ? found : undefined;
  }

  private async note(registration?: ServiceWorkerRegistration): Promise<void> {
    if (this.state == "unsupported" || this.state == "denied") return;
    const subscription = await registration?.pushManager.getSubscription();
    this.state = subscription ? "subscribed" : registration ? "unsubscribed" : "default";
  }
}

/** Resolves once a worker can take messages. */
function active(registration: ServiceWorkerRegistration): Promise<void> {
  return new Promise((done) => {
    const worker = registration.active ?? registration.waiting ?? registration.installing;
    if (!worker || worker.state == "activated") return done();
    worker.addEventListener("statechange", () => worker.state == "activated" && done());
  });
}
