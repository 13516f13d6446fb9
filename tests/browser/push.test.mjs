// Web Push from subscribing to clicking. A browser makes a subscription with its own push service, which is Google's for
// Chromium, and there is no other way to one: `PushManager.subscribe` is the one thing that the test puts something in
// the place of. It has the keys of a browser, takes the server's encrypted message as a push service does, decrypts it
// as a browser does (RFC 8291), and gives it to the worker by the DevTools protocol. All else is Chromium's own.
import assert from "node:assert/strict";
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import http from "node:http";
import test from "node:test";
import { Gate, open, profile, Server, site, until } from "./support.mjs";

/** A browser's side of RFC 8291, and the push service where it is reached. */
class PushService {
  received = [];
  ecdh = createECDH("prime256v1");
  auth = randomBytes(16);

  static async start(t) {
    const service = new PushService();
    service.ecdh.generateKeys();
    const server = http.createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        service.received.push({ headers: request.headers, body: Buffer.concat(parts) });
        response.writeHead(201).end();
      });
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    t.after(() => server.close());
    service.endpoint = `http://127.0.0.1:${server.address().port}/push/1`;
    return service;
  }

  subscription() {
    const keys = { p256dh: this.ecdh.getPublicKey().toString("base64url"), auth: this.auth.toString("base64url") };
    return { endpoint: this.endpoint, keys };
  }

  /** Decrypts a message (RFC 8188, RFC 8291). */
  open(body) {
    const salt = body.subarray(0, 16);
    const length = body[20];
    const sender = body.subarray(21, 21 + length);
    const sealed = body.subarray(21 + length);
    const secret = this.ecdh.computeSecret(sender);
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.ecdh.getPublicKey(), sender]);
    const key = Buffer.from(hkdfSync("sha256", secret, this.auth, info, 32));
    const derive = (name, bytes) => Buffer.from(hkdfSync("sha256", key, salt, Buffer.from(`Content-Encoding: ${name}\0`), bytes));
    const decipher = createDecipheriv("aes-128-gcm", derive("aes128gcm", 16), derive("nonce", 12));
    decipher.setAuthTag(sealed.subarray(-16));
    const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
    return plain.subarray(0, plain.lastIndexOf(2)).toString();
  }
}

test("a message is shown and clicked, and the page's own worker stays what it is", async (t) => {
  const service = await PushService.start(t);
  const allow = { NUDGE_WEBHOOKS__ALLOW_HTTP: "true", NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: "true" };
  const server = await Server.start(t, allow);
  const credential = await server.api("POST", "/push/credentials", { platform: "web", vapid: { generate: true } });
  const gate = await Gate.start(t, server);
  const shop = await site(t, {
    sdk: "/sdk/nudge.js",
    files: {
      "/sw.js": `let pushes = 0;
        self.addEventListener("push", () => pushes++);
        self.addEventListener("fetch", (event) => event.request.url.endsWith("/from-worker") && event.respondWith(new Response("own worker, " + pushes + " messages")));`,
      "/nudge/worker.js": "importScripts('/sdk/worker.js' + '?as-any-page');",
      "/landing": "<!doctype html><title>Landing</title>",
    },
  });
  const context = await profile(t);
  const origin = new URL(shop.url).origin;
  await context.grantPermissions(["notifications"], { origin });
  const page = await open(context, shop.url, { writeKey: server.access.writeKey, baseUrl: gate.base });
  await page.evaluate(async () => {
    await navigator.serviceWorker.register("/sw.js");
    await navigator.serviceWorker.ready;
  });
  await page.evaluate((subscription) => {
    PushManager.prototype.subscribe = async function (options) {
      window.subscribedWith = { key: btoa(String.fromCharCode(...new Uint8Array(options.applicationServerKey))), visible: options.userVisibleOnly };
      let isThere = true;
      const made = { toJSON: () => subscription, unsubscribe: async () => !(isThere = false) };
      PushManager.prototype.getSubscription = async () => (isThere ? made : null);
      return made;
    };
  }, service.subscription());
  assert.equal(await page.evaluate(() => nudge.push.subscribe()), "subscribed");
  assert.equal(await page.evaluate(() => nudge.push.state), "subscribed");
  const { key, visible } = await page.evaluate(() => subscribedWith);
  assert.equal(Buffer.from(key, "base64").toString("base64url"), credential.identity.publicKey);
  assert.equal(visible, true);

  const [user] = await server.users();
  const { devices } = await server.api("GET", `/users/${user.anonymousId}`);
  assert.deepEqual(devices.map(({ push }) => push?.status), ["active"]);
  const campaign = await server.api("POST", "/campaigns", {
    name: "Order",
    mode: "transactional",
    status: "active",
    variants: [{ title: "On its way", body: "Your order was sent", weight: 1, openAction: { action: "url", url: `${origin}/landing` } }],
  });
  const sent = await fetch(`${server.base}/v1/apps/${server.access.appId}/push/transactional`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" },
    body: JSON.stringify({ campaignId: campaign.id, anonymousId: user.anonymousId }),
  });
  assert.equal(sent.status, 202);
  const { deliveryId } = (await sent.json()).data;
  const [{ headers, body }] = await until("the message", () => (service.received.length ? service.received : null));
  assert.equal(headers["content-encoding"], "aes128gcm");
  const data = service.open(body);
  assert.equal(JSON.parse(data).nudge.deliveryId, deliveryId);

  // To the worker, as the push service would.
  const session = await context.newCDPSession(page);
  const registrations = [];
  session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: found }) => registrations.push(...found));
  await session.send("ServiceWorker.enable");
  const { registrationId } = await until("the worker", () => registrations.find(({ scopeURL }) => scopeURL.endsWith("/nudge/")));
  await session.send("ServiceWorker.deliverPushMessage", { origin: `${origin}/`, registrationId, data });
  const state = async () => (await server.api("GET", `/push/deliveries/${deliveryId}`)).status;
  await until("it is shown", async () => (await state()) == "displayed");
  const worker = await until("the worker runs", () => context.serviceWorkers().find((worker) => worker.url().includes("/nudge/worker.js")));
  const shown = await worker.evaluate(async () => (await registration.getNotifications()).map(({ title, body, tag }) => ({ title, body, tag })));
  assert.deepEqual(shown, [{ title: "On its way", body: "Your order was sent", tag: deliveryId }]);

  await worker.evaluate(async () => {
    const [notification] = await registration.getNotifications();
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "" }));
  });
  await until("it is clicked", async () => (await state()) == "clicked");
  const { transitions } = await server.api("GET", `/push/deliveries/${deliveryId}`);
  assert.deepEqual(transitions.map(({ status }) => status), ["queued", "sent", "delivered", "displayed", "opened", "clicked"]);

  assert.equal(await page.evaluate(() => nudge.push.unsubscribe()), "unsubscribed");
  const after = await server.api("GET", `/users/${user.anonymousId}`);
  assert.ok(after.devices.every(({ push }) => push?.status != "active"), JSON.stringify(after.devices));
  // The page's own worker does its own, and had a part in nothing of it.
  await page.reload();
  assert.equal(await page.evaluate(() => fetch("/from-worker").then((answer) => answer.text())), "own worker, 0 messages");
  const scopes = await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map(({ scope }) => new URL(scope).pathname));
  assert.deepEqual(scopes.sort(), ["/", "/nudge/"]);
});
