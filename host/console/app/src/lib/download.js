// Files that the server makes: all rows of a filter as CSV, with the list's own filter and without its pages.
import { send } from "./api.js";

/**
 * Saves what a route answers as CSV.
 * @param {string} path
 * @param {import("./api.js").Query} query
 * @param {string} name of the file
 */
export async function downloadCsv(path, query, name) {
  const response = await send("GET", path, { query, headers: { accept: "text/csv" } });
  save(await response.blob(), name);
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
