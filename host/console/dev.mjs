// Serves the files of `app/` in front of a server that serves the rest: a change of a page is seen without a build.
//
//   node dev.mjs --server http://127.0.0.1:8480 [--port 0]
//
// Sign in with a code that `nudge console-link` or `nudge dev` prints.
import { readFileSync } from "node:fs";
import http from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isOurs, withoutComments } from "./served.mjs";

const APP = fileURLToPath(new URL("app/", import.meta.url));
const HASH = "dev";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** Answers a file of `app/`, or 404. */
function file(path, response) {
  const name = normalize(path);
  let content;
  try {
    if (name.startsWith("..")) throw new Error("outside");
    content = readFileSync(join(APP, name));
  } catch {
    response.writeHead(404);
    return response.end();
  }
  if (name.endsWith(".html")) content = content.toString().replaceAll("{{HASH}}", HASH);
  else if (isOurs(name)) content = withoutComments(content.toString());
  response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store" });
  response.end(content);
}

/** Hands a request on, as one that was sent to the server itself. */
function proxy(server, request, response) {
  const { hostname, port, host, origin } = new URL(server);
  const headers = { ...request.headers, host, ...(request.headers.origin && { origin }) };
  const upstream = http.request({ hostname, port, method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  upstream.on("error", () => response.destroy());
  response.on("close", () => upstream.destroy());
  request.pipe(upstream);
}

const { values } = parseArgs({ options: { server: { type: "string" }, port: { type: "string", default: "0" } } });
if (!values.server) {
  console.error("say where the server is: `--server http://127.0.0.1:8480`");
  process.exit(2);
}
const listener = http.createServer((request, response) => {
  const path = request.url.split("?")[0];
  if (path == "/console/") return file("index.html", response);
  if (path == "/docs") return file("docs.html", response);
  if (path.startsWith(`/console/${HASH}/`)) return file(path.slice(`/console/${HASH}/`.length), response);
  proxy(values.server, request, response);
});
listener.listen(Number(values.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/console/`));
