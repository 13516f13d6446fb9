/**
 * The service worker of Web Push: shows messages, opens what they lead to, and tells the server. Its scope is `/nudge/`,
 * so that the page's own worker stays what it is.
 */
import { databaseStore, type Item, openDatabase } from "../core/store.js";
import type { Me, Person } from "../core/state.js";

/** What the server sends. */
interface Message {
  title: string;
  body: string;
  tag?: string;
  image?: string;
  nudge: { deliveryId: string; openAction?: { action: string; url?: string } };
}

interface Client {
  url: string;
  focus(): Promise<unknown>;
  navigate(url: string): Promise<unknown>;
  postMessage(message: unknown): void;
}

/** What this file uses of a service worker's global. */
interface Worker {
  location: Location;
  registration: ServiceWorkerRegistration;
  clients: {
    matchAll(options: object): Promise<Client[]>;
    openWindow(url: string): Promise<Client | null>;
    claim(): Promise<void>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(name: string, listener: (event: any) => void): void;
}

const worker = self as unknown as Worker;
const parameters = new URLSearchParams(worker.location.search);
const writeKey = parameters.get("key") ?? "";
const server = parameters.get("server") ?? "";

/** Sends as the person of now; what can't be sent waits in the queue, which the next page sends. */
async function send(method: string, path: string, body: object): Promise<void> {
  const database = await openDatabase(writeKey);
  const store = databaseStore(database);
  try {
    const me: Me | undefined = await store.get("me");
    if (!me) return;
    const person: Person | undefined = await store.get(`person:${me.aid}`);
    const whole = { anonymousId: me.aid, ...body };
    const answer = await fetch(server + path, {
      method,
      headers: {
        authorization: `Bearer ${writeKey}`,
        "content-type": "application/json",
        "x-service-subject-token": person?.token ?? "",
      },
      body: JSON.stringify(whole),
      credentials: "omit",
    }).catch(() => undefined);
    if (answer && answer.status != 401 && answer.status != 429 && answer.status < 500) return;
    const item: Item = { kind: "call", aid: me.aid, method, path, body: whole };
    await store.change([], () => ({ add: [item] }));
  } finally {
    database.close();
  }
}

/** Tells the server what became of a message. */
const receipts = (deliveryId: string, types: string[], actionId?: string) => {
  const at = new Date().toISOString();
  const items = types.map((type) => ({ deliveryId, type, at, actionId: type == "clicked" ? actionId : undefined }));
  return send("POST", "/v1/sdk/push/receipts", { receipts: items }).catch(() => {});
};

async function show(message: Message): Promise<void> {
  const { title, body, tag, image, nudge } = message;
  const options = { body, tag, image, data: nudge };
  await worker.registration.showNotification(title, options as NotificationOptions);
  await receipts(nudge.deliveryId, ["displayed"]);
}

/** Opens what a message leads to, in a window that is there already if one shows it. What the app alone can follow it is told. */
async function follow(action?: { action: string; url?: string }): Promise<void> {
  if (!action || action.action == "none") return;
  const windows = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const { origin } = worker.location;
  const home = new URL("/", origin);
  let url = action.url && /^(url|deep_link)$/.test(action.action) ? new URL(action.url, origin) : home;
  if (!/^https?:$/.test(url.protocol)) {
    // What runs scripts is not followed. Windows open the web alone: a page of the app hears of the app's own addresses.
    if (action.action == "url" || /^(javascript|data|vbscript|blob|file):$/.test(url.protocol)) return;
    url = home;
  }
  const leads = url != home;
  const same = windows.find((window) => (leads ? window.url == url.href : new URL(window.url).origin == url.origin));
  if (same) {
    same.postMessage({ nudge: action });
    await same.focus();
  } else {
    const opened = await worker.clients.openWindow(url.href);
    // Where the link leads nowhere, the page does what is asked. Its messages wait until its document is read: it hears them
    // if it makes the SDK, which listens at once, before `DOMContentLoaded`. One that makes it later does not.
    if (!leads) opened?.postMessage({ nudge: action });
  }
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("push", (event) => {
  let message: Message | undefined;
  try {
    message = event.data.json();
  } catch {
    // Somebody else's message.
  }
  if (message?.nudge) event.waitUntil(show(message));
});

worker.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  const nudge: Message["nudge"] | undefined = notification.data;
  notification.close();
  if (!nudge) return;
  // Who taps the message has opened it; who taps a button of it has clicked that as well.
  const types = action ? ["opened", "clicked"] : ["opened"];
  event.waitUntil(Promise.all([follow(nudge.openAction), receipts(nudge.deliveryId, types, action)]));
});

worker.addEventListener("notificationclose", (event) => {
  const nudge: Message["nudge"] | undefined = event.notification.data;
  if (nudge) event.waitUntil(receipts(nudge.deliveryId, ["dismissed"]));
});

// A push service that changed its mind about an address: the server hears of the new one.
worker.addEventListener("pushsubscriptionchange", (event) => {
  const renew = async () => {
    const options = event.oldSubscription?.options;
    const subscription = event.newSubscription ?? (options && (await worker.registration.pushManager.subscribe(options)));
    if (!subscription) return;
    const database = await openDatabase(writeKey);
    const me: Me | undefined = await databaseStore(database).get("me");
    database.close();
    const body = { deviceId: me?.device, provider: "webpush", permission: "granted", subscription: subscription.toJSON() };
    await send("POST", "/v1/sdk/push-tokens", body);
  };
  event.waitUntil(renew().catch(() => {}));
});
