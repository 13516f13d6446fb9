// Files that the server makes: all rows of a filter as CSV, with the list's own filter and without its pages.
import { send } from "./api.js";
import { bytes } from "./format.js";
import { follow } from "./notice.js";

/**
 * Saves what a route answers as CSV. Where that takes longer, it is said how much has come.
 * @param {string} path
 * @param {import("./api.js").Query} query
 * @param {string} name of the file
 */
export async function downloadCsv(path, query, name) {
  const response = await send("GET", path, { query, headers: { accept: "text/csv" } });
  const reader = response.body?.getReader();
  const tell = follow();
  const parts = [];
  let size = 0;
  let said = Date.now();
  try {
    for (let part; reader && !(part = await reader.read()).done; ) {
      parts.push(part.value);
      size += part.value.length;
      if (Date.now() < said + 1000) continue;
      said = Date.now();
      tell(`${name}: ${bytes(size)} so far…`);
    }
  } finally {
    tell("");
  }
  save(new Blob(parts, { type: "text/csv" }), name);
}

/**
 * Saves something as a file.
 * @param {Blob} content
 * @param {string} name
 */
export function save(content, name) {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
