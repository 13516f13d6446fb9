// Server-sent events. Read by `fetch`, not by `EventSource`, which tells neither why it was refused nor, after a pause,
// where to go on.
import { address, ApiError, send } from "./api.js";
import { useCallback, useLayoutEffect, useRef, useState } from "./preact.js";

const LONGEST_WAIT = 30_000;

/** @typedef {{ event: string, data?: string, id?: string }} Message without data: an id alone, after which a stream goes on */

/**
 * Takes a stream's text apart; a message ends with an empty line.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<Message>}
 */
async function* messages(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest = (rest + value).replaceAll("\r\n", "\n");
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const message = parse(rest.slice(0, end));
      if (message) yield message;
    }
  }
}

/** @param {string} text @returns {Message | undefined} undefined: it tells nothing, as a comment */
function parse(text) {
  /** @type {Record<string, string[]>} */
  const fields = {};
  for (const line of text.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name) (fields[name] ??= []).push(value);
  }
  return (fields.data || fields.id) && { event: fields.event?.[0] ?? "message", data: fields.data?.join("\n"), id: fields.id?.[0] };
}

/**
 * Listens until it is closed; comes back after a break, and goes on after the last event that was seen, or from where it began.
 * @param {string} path
 * @param {import("./api.js").Query} query
 * @param {object} to
 * @param {(event: string, data: any) => void} to.message
 * @param {(state: "connecting" | "open" | "waiting" | "refused", error?: Error) => void} to.state
 * @param {string} [to.after] where to go on, as `close` has answered it
 * @returns {{ close: () => string | undefined }} answers where to go on
 */
export function listen(path, query, { message, state, after }) {
  const controller = new AbortController();
  let last = after;
  const run = async () => {
    for (let wait = 500; !controller.signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      state("connecting");
      let error;
      try {
        /** @type {Record<string, string>} */
        const headers = { accept: "text/event-stream" };
        if (last) headers["last-event-id"] = last;
        const response = await send("GET", address(path, query), { headers, signal: controller.signal });
        if (!response.body) throw new ApiError(0, { code: "unreachable", detail: "The stream has no content." });
        let begun = false;
        for await (const { event, data, id } of messages(response.body)) {
          if (controller.signal.aborted) return;
          last = id ?? last;
          // The first one says where it begins: whoever pauses from now on loses nothing.
          if (!begun) state("open");
          begun = true;
          if (data === undefined) continue;
          wait = 500;
          message(event, JSON.parse(data));
        }
      } catch (thrown) {
        if (controller.signal.aborted) return;
        error = /** @type {Error} */ (thrown);
      }
      const final = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status != 429;
      state(final ? "refused" : "waiting", error);
      if (final) return;
      if (error instanceof ApiError && error.retryAfter) wait = 1000 * error.retryAfter;
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  void run();
  return {
    close() {
      controller.abort();
      return last;
    },
  };
}

/**
 * A stream as it comes: the newest items first.
 * @param {string | null} path
 * @param {import("./api.js").Query} query
 * @param {{ most?: number, event?: string }} [options] how many items are held; which event has them
 */
export function useEvents(path, query, { most = 500, event: wanted = "event" } = {}) {
  const [items, setItems] = useState(/** @type {any[]} */ ([]));
  const [state, setState] = useState(/** @type {{ name: string, error?: Error }} */ ({ name: "connecting" }));
  const [rate, setRate] = useState(/** @type {number | undefined} */ (undefined));
  const [paused, setPaused] = useState(false);
  const sampling = useRef(0);
  const last = useRef(/** @type {{ key: string, id?: string }} */ ({ key: "" }));
  const key = path + JSON.stringify(query);
  // Before anything of it is seen: what is shown as live is, and what is shown as paused brings nothing more.
  useLayoutEffect(() => {
    if (last.current.key !== key) {
      last.current = { key };
      setItems([]);
      setRate(undefined);
    }
    if (!path || paused) return;
    const { close } = listen(path, query, {
      after: last.current.id,
      message: (event, data) => {
        if (event == "sampled") {
          setRate(data.rate);
          clearTimeout(sampling.current);
          sampling.current = window.setTimeout(() => setRate(undefined), 10_000);
        }
        if (event == wanted) setItems((before) => [data, ...before].slice(0, most));
      },
      state: (name, error) => setState({ name, error }),
    });
    return () => (last.current.id = close());
  }, [key, paused]);
  const clear = useCallback(() => setItems([]), []);
  return { items, state: paused ? "paused" : state.name, error: state.error, rate, paused, pause: () => setPaused(true), resume: () => setPaused(false), clear };
}
