// Web Push from subscribing to tapping. A browser makes a subscription with its own push service, which is Google's for
// Chromium, and there is no other way to one: `PushManager.subscribe` is the one thing that the test puts something in
// the place of. It has the keys of a browser, takes the server's encrypted message as a push service does, decrypts it
// as a browser does (RFC 8291), and gives it to the worker by the DevTools protocol. All else is Chromium's own.
import assert from "node:assert/strict";
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import http from "node:http";
import test from "node:test";
import { begin, Gate, holds, open, profile, Server, site, until } from "./support.mjs";

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

test("a message is shown and opened, a button of it is clicked, and the page's own worker stays what it is", async (t) => {
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
  const state = async () => (await server.api("GET", `/push/deliveries/${deliveryId}`)).status;
  // Before it is shown: transitions stand in the order of their times.
  await until("the server knows that it was taken", async () => (await state()) == "delivered");

  // To the worker, as the push service would.
  const session = await context.newCDPSession(page);
  const registrations = [];
  session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: found }) => registrations.push(...found));
  await session.send("ServiceWorker.enable");
  const { registrationId } = await until("the worker", () => registrations.find(({ scopeURL }) => scopeURL.endsWith("/nudge/")));
  await session.send("ServiceWorker.deliverPushMessage", { origin: `${origin}/`, registrationId, data });
  await until("it is shown", async () => (await state()) == "displayed");
  const worker = await until("the worker runs", () => context.serviceWorkers().find((worker) => worker.url().includes("/nudge/worker.js")));
  const shown = await worker.evaluate(async () => (await registration.getNotifications()).map(({ title, body, tag }) => ({ title, body, tag })));
  assert.deepEqual(shown, [{ title: "On its way", body: "Your order was sent", tag: deliveryId }]);

  await worker.evaluate(async () => {
    const [notification] = await registration.getNotifications();
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "" }));
  });
  await until("it is opened", async () => (await state()) == "opened");
  const statuses = async () => (await server.api("GET", `/push/deliveries/${deliveryId}`)).transitions.map(({ status }) => status);
  const opened = ["queued", "sent", "delivered", "displayed", "opened"];
  assert.deepEqual(await statuses(), opened);
  await worker.evaluate(async (deliveryId) => {
    await registration.showNotification("With a button", { tag: "button", data: { deliveryId } });
    const [notification] = await registration.getNotifications({ tag: "button" });
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "x" }));
  }, deliveryId);
  await until("its button is clicked", async () => (await state()) == "clicked");
  assert.deepEqual(await statuses(), [...opened, "clicked"]);

  // An address that the app alone can follow: an open page hears of it, and of a program nobody does.
  await page.evaluate(() => {
    window.actions = [];
    addEventListener("nudge:action", ({ detail }) => actions.push(detail.url));
  });
  for (const url of ["data:text/html,x", "shop://orders/7"]) {
    await worker.evaluate(async ({ deliveryId, url }) => {
      await registration.showNotification("In the app", { tag: url, data: { deliveryId, openAction: { action: "deep_link", url } } });
      const [notification] = await registration.getNotifications({ tag: url });
      self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "" }));
    }, { deliveryId, url });
  }
  await holds(async () => assert.deepEqual(await page.evaluate(() => actions), ["shop://orders/7"]));

  assert.equal(await page.evaluate(() => nudge.push.unsubscribe()), "unsubscribed");
  const after = await server.api("GET", `/users/${user.anonymousId}`);
  assert.ok(after.devices.every(({ push }) => push?.status != "active"), JSON.stringify(after.devices));
  // The page's own worker does its own, and had a part in nothing of it.
  await page.reload();
  assert.equal(await page.evaluate(() => fetch("/from-worker").then((answer) => answer.text())), "own worker, 0 messages");
  const scopes = await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map(({ scope }) => new URL(scope).pathname));
  assert.deepEqual(scopes.sort(), ["/", "/nudge/"]);
});

test("a reset ends what somebody subscribed to, in whichever tab and however early", async (t) => {
  const service = await PushService.start(t);
  const server = await Server.start(t, { NUDGE_WEBHOOKS__ALLOW_HTTP: "true", NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: "true" });
  await server.api("POST", "/push/credentials", { platform: "web", vapid: { generate: true } });
  // A page with trusted types has a policy for the worker's address, as the README has it.
  const policy = "const worker = `${location.origin}/nudge/worker.js?`; trustedTypes.createPolicy('default', { createScriptURL: (url) => (url.startsWith(worker) ? url : null) });";
  const shop = await site(t, {
    sdk: "/sdk/nudge.js",
    head: `<meta http-equiv="content-security-policy" content="require-trusted-types-for 'script'"><script>${policy}</script>`,
    files: { "/nudge/worker.js": "importScripts('/sdk/worker.js');" },
  });
  const options = { writeKey: server.access.writeKey, baseUrl: server.base };
  const context = await profile(t);
  await context.grantPermissions(["notifications"], { origin: new URL(shop.url).origin });
  // The browser's subscription is one of all tabs.
  await context.addInitScript((subscription) => {
    const made = { toJSON: () => subscription, unsubscribe: async () => !localStorage.removeItem("subscribed") };
    PushManager.prototype.subscribe = async () => (localStorage.setItem("subscribed", "1"), made);
    PushManager.prototype.getSubscription = async () => (localStorage.getItem("subscribed") ? made : null);
  }, service.subscription());
  const other = await open(context, shop.url, options);
  await other.evaluate(() => nudge.flush());
  const page = await open(context, shop.url, options);
  /** Whether somebody is reached on the device; who that is. */
  const reached = async () => {
    const found = [];
    for (const { anonymousId } of await server.users()) {
      const { devices } = await server.api("GET", `/users/${anonymousId}`);
      if (devices.some(({ push }) => push?.status == "active")) found.push(anonymousId);
    }
    return found;
  };
  const ways = {
    "the tab that subscribed": () => page.evaluate(() => nudge.reset()),
    "a tab that was open before": () => other.evaluate(() => nudge.reset()),
    "a page that has just begun": async () => {
      await page.reload();
      await page.evaluate((options) => {
        window.errors = [];
        window.nudge = Nudge.init(options);
        nudge.on("error", (error) => errors.push(error));
        nudge.reset();
      }, options);
    },
  };
  for (const [where, reset] of Object.entries(ways)) {
    assert.equal(await page.evaluate(() => nudge.push.subscribe()), "subscribed", where);
    assert.equal((await reached()).length, 1, where);
    await reset();
    await holds(async () => assert.deepEqual(await reached(), [], where));
    await holds(async () => assert.equal(await page.evaluate(() => localStorage.getItem("subscribed")), null, where));
  }
  await holds(async () => assert.equal(await page.evaluate(() => nudge.push.state), "unsubscribed"));
  // Who has no token is reset without a word.
  await page.evaluate(() => (nudge.reset(), nudge.flush()));
  assert.deepEqual(await page.evaluate(() => errors), []);

  // What a version before subscribed to is known once a page finds it.
  await page.evaluate(() => nudge.push.subscribe());
  await page.evaluate((key) => new Promise((done) => {
    indexedDB.open(`nudge:${key}`).onsuccess = ({ target: { result: database } }) => {
      const transaction = database.transaction("values", "readwrite");
      const values = transaction.objectStore("values");
      values.get("me").onsuccess = ({ target: { result: { push: _, ...me } } }) => void values.put(me, "me");
      transaction.oncomplete = () => done(database.close());
    };
  }), options.writeKey);
  await page.reload();
  await begin(page, options);
  await page.waitForFunction(() => nudge.push.state == "subscribed");
  await page.evaluate(() => nudge.reset());
  await holds(async () => assert.deepEqual(await reached(), []));
});

test("who subscribes after the app's key was replaced does so with the new one, and hears why where it can't be asked for", async (t) => {
  const server = await Server.start(t);
  const gate = await Gate.start(t, server);
  const add = () => server.api("POST", "/push/credentials", { platform: "web", vapid: { generate: true } });
  const first = await add();
  const shop = await site(t, { sdk: "/sdk/nudge.js", files: { "/nudge/worker.js": "importScripts('/sdk/worker.js');" } });
  const context = await profile(t);
  await context.grantPermissions(["notifications"], { origin: new URL(shop.url).origin });
  const page = await open(context, shop.url, { writeKey: server.access.writeKey, baseUrl: gate.base });
  await page.evaluate(() => nudge.flush());
  await page.evaluate(() => {
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
      throw new Error(btoa(String.fromCharCode(...new Uint8Array(applicationServerKey))));
    };
  });
  /** The message of the refusal: of the browser here, the key. */
  const refused = () => page.evaluate(() => nudge.push.subscribe().catch(({ message }) => message));
  const key = async () => Buffer.from(await refused(), "base64").toString("base64url");
  assert.equal(await key(), first.identity.publicKey);

  await server.api("DELETE", `/push/credentials/${first.id}`);
  assert.match(await refused(), /no web credential/);
  const second = await add();
  assert.equal(await key(), second.identity.publicKey);
  gate.refuse = () => "drop";
  assert.match(await refused(), /can't be reached/);
});
