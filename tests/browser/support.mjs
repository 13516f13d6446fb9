// What the browser tests stand on: Debian's Chromium, the server's program as a process of its own, a page on an origin
// of its own, and a gate between browser and server that notes requests and lets them fail.
import { spawn } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** Where the bundles are that a server embeds. */
export const DIST = new URL("../../host/web-sdk/dist/", import.meta.url).pathname;
const SERVER = process.env.NUDGE_PROGRAM;
const CHROMIUM = process.env.NUDGE_CHROMIUM ?? "/usr/bin/chromium";

const cleanups = new WeakMap();

/** Does something after the test: the last thing first, so that folders go after who uses them. */
function after(t, clean) {
  if (!cleanups.has(t)) {
    const list = [];
    cleanups.set(t, list);
    t.after(async () => {
      for (const clean of list.reverse()) await clean();
    });
  }
  cleanups.get(t).push(clean);
}

/** A folder that goes with the test. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "nudge-browser-"));
  after(t, () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits until something is true; answers it. */
export async function until(what, check, seconds = 60) {
  for (const end = Date.now() + 1000 * seconds; ; ) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(50);
  }
}

/**
 * Waits until an assertion holds: a page shows a thing some time after the thing before it. What fails at last is thrown.
 * @param {() => Promise<void>} check reads anew each time, and changes nothing
 */
export async function holds(check, seconds = 30) {
  for (const end = Date.now() + 1000 * seconds; ; await sleep(50)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** Chromium's arguments: those it needs as root, and the ones that keep it to this machine. */
const ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"];

/** How long a test waits for something of a page, in milliseconds: machines are busy while all tests run. */
const PATIENCE = 90_000;

/** Starts Chromium with a profile that lasts, as somebody's own has. */
export async function profile(t, path = folder(t), options = {}) {
  const context = await chromium.launchPersistentContext(path, {
    executablePath: CHROMIUM,
    headless: true,
    args: ARGUMENTS,
    ...options,
  });
  context.setDefaultTimeout(PATIENCE);
  after(t, () => context.close().catch(() => {}));
  return context;
}

/** Starts Chromium for contexts that forget everything. */
export async function browser(t) {
  const started = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: ARGUMENTS });
  const newContext = started.newContext.bind(started);
  started.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE);
    return context;
  };
  after(t, () => started.close().catch(() => {}));
  return started;
}

/** Sets the clock of a context's pages wrong. */
export const shiftClock = (context, hours) =>
  context.addInitScript((shift) => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + shift;
    const Real = Date;
    window.Date = class extends Real {
      constructor(...parts) {
        super(...(parts.length ? parts : [Real.now()]));
      }
    };
  }, hours * 3_600_000);

/** Kills a browser's processes as a crash of the machine would: none can write anything more. */
export function killBrowser(profilePath) {
  for (const id of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${id}/cmdline`, "utf8").includes(profilePath)) process.kill(Number(id), "SIGKILL");
    } catch {
      // It ended with another of them.
    }
  }
}

/** The server's program on a data directory and a port that stay over restarts. */
export class Server {
  constructor(data, environment = {}) {
    this.data = data;
    this.environment = environment;
    this.arguments = [];
    this.listen = "127.0.0.1:0";
  }

  static async start(t, environment) {
    const server = new Server(folder(t), environment);
    after(t, () => server.kill());
    await server.start();
    return server;
  }

  async start() {
    const file = join(this.data, "access.json");
    rmSync(file, { force: true });
    const options = {
      env: {
        PATH: process.env.PATH,
        // Plugins stay compiled from server to server under one key.
        NUDGE_SECRETS__MASTER_KEY: "bnVkZ2UtdGVzdHMtbWFzdGVyLWtleS0zMi1ieXRlcyE=",
        NUDGE_PLUGINS__DEADLINE_MS: "20000",
        NUDGE_PLUGINS__VALIDATION_DEADLINE_MS: "20000",
        NUDGE_PLUGINS__CACHE_DIR: process.env.NUDGE_PLUGINS__CACHE_DIR ?? join(tmpdir(), "nudge-browser-plugins"),
        ...this.environment,
      },
      stdio: ["ignore", "pipe", "inherit"],
    };
    this.process = spawn(SERVER, ["dev", "--listen", this.listen, "--data-dir", this.data, "--json", file, ...this.arguments], options);
    this.output = "";
    this.process.stdout.on("data", (text) => (this.output += text));
    await until("the server serves", () => {
      if (this.process.exitCode !== null) throw new Error(`the server ended: ${this.process.exitCode}\n${this.output}`);
      return existsSync(file);
    }, 120);
    this.access = JSON.parse(readFileSync(file, "utf8"));
    this.base = this.access.baseUrl;
    this.listen = new URL(this.base).host;
  }

  /** Ends it as a power cut would. */
  async kill() {
    if (this.process.exitCode !== null || this.process.signalCode) return;
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGKILL");
    await ended;
  }

  /** Asks a management route, as the app's admin. */
  async api(method, path, body) {
    const response = await fetch(`${this.base}/v1/apps/${this.access.appId}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.access.adminToken}`, "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text).data : undefined;
  }

  /** Everybody. */
  users = async () => (await this.api("GET", "/users?limit=200")).items;

  /** All events of somebody, oldest first. */
  async events(anonymousId, query = "") {
    const all = [];
    for (let cursor = ""; ; ) {
      const page = await this.api("GET", `/users/${anonymousId}/events?limit=500${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      all.push(...page.items);
      if (!page.nextCursor) return all.reverse();
      cursor = page.nextCursor;
    }
  }

  /** An active survey. */
  survey(fields = {}) {
    const flow = { startQuestionId: "q1", questions: [{ id: "q1", type: "nps", title: "How likely?", required: true }], branches: [], endScreens: [], progressStyle: "bar", backNavigation: false };
    const trigger = { kind: "event", eventName: "order_placed", delaySeconds: 0, occurrence: { mode: "every" } };
    return this.api("POST", "/surveys", { name: "Survey", mode: "triggered", status: "active", trigger, flow, ...fields });
  }
}

function listen(t, handler) {
  const server = http.createServer(handler);
  after(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

/**
 * What is between the browser and the server: notes requests, and answers in the server's place where `refuse` says
 * so: a status with headers, `"drop"` (the connection breaks), `"hold"` (nothing comes), or `"lose"` (the server does it,
 * the answer is lost).
 */
export class Gate {
  requests = [];
  refuse = () => undefined;

  static async start(t, server) {
    const gate = new Gate();
    gate.http = await listen(t, (request, response) => gate.pass(server, request, response));
    gate.base = `http://127.0.0.1:${gate.http.address().port}`;
    return gate;
  }

  /** Requests of a route: `"POST /v1/sdk/ingest"`. */
  of = (route) => this.requests.filter((request) => request.route == route);

  pass(server, request, response) {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      const route = `${request.method} ${request.url.split("?")[0]}`;
      const note = { route, url: request.url, headers: request.headers, text: body.toString(), at: Date.now() };
      this.requests.push(note);
      const refusal = this.refuse(note);
      if (refusal == "drop") return request.socket.destroy();
      if (refusal == "hold") return;
      if (refusal && refusal != "lose") {
        response.writeHead(refusal.status, { "access-control-allow-origin": "*", "access-control-expose-headers": "retry-after", "content-type": "application/problem+json", ...refusal.headers });
        return response.end(refusal.text ?? JSON.stringify({ code: refusal.code ?? "unavailable", detail: "refused by the gate" }));
      }
      const { hostname, port } = new URL(server.base);
      const options = { hostname, port, method: request.method, path: request.url, headers: request.headers };
      const upstream = http.request(options, (answer) => {
        note.status = answer.statusCode;
        if (refusal == "lose") return answer.resume().on("end", () => request.socket.destroy());
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      upstream.on("error", () => request.socket.destroy());
      response.on("close", () => upstream.destroy());
      upstream.end(body);
    });
  }
}

/**
 * A site of its own origin. `files`: path → text, or a function of the request, which may take its time; `/` is a page that loads the SDK from a
 * server as any page does.
 */
export async function site(t, { sdk, files = {}, head = "", headers = {} } = {}) {
  const types = { html: "text/html; charset=utf-8", js: "text/javascript", mjs: "text/javascript", css: "text/css" };
  const page = `<!doctype html><html lang="en"><head><title>Shop</title>${head}${sdk ? `<script src="${sdk}"></script>` : ""}</head><body><h1>Shop</h1></body></html>`;
  const server = await listen(t, async (request, response) => {
    const path = request.url.split("?")[0];
    let text = files[path] ?? (path.startsWith("/sdk/") ? readFileSync(DIST + path.slice(5)) : path == "/" ? page : undefined);
    if (typeof text == "function") text = await text(request);
    const type = types[path.split(".").pop()] ?? types.html;
    response.writeHead(text === undefined ? 404 : 200, { "content-type": type, ...headers });
    response.end(text);
  });
  const { port } = server.address();
  return { url: `http://localhost:${port}/`, port, server };
}

/** Opens a page and starts the SDK there; errors that it tells of are in `window.errors`. */
export async function open(context, url, options) {
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error("page:", error));
  await page.goto(url);
  await begin(page, options);
  return page;
}

/** Starts the SDK in a page. */
export async function begin(page, options) {
  await page.evaluate((options) => {
    window.errors = [];
    window.nudge = window.Nudge.init(options);
    window.nudge.on("error", (error) => window.errors.push(error));
  }, options);
}

/** The app's backend: signs who somebody is, as contract 2 has it. */
export class Backend {
  static async of(server) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const backend = Object.assign(new Backend(), { server, privateKey });
    await server.api("POST", "/identity-keys", { kid: "shop", publicKey: publicKey.export({ format: "pem", type: "spki" }) });
    return backend;
  }

  /** An identity token. */
  token(externalId, seconds = 3600) {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.server.access.appId, sub: externalId, iat: now, exp: now + seconds };
    const text = `${part({ alg: "ES256", typ: "JWT", kid: "shop" })}.${part(claims)}`;
    const signature = sign("sha256", text, { key: this.privateKey, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }
}
