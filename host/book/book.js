// The book's search: all words have to be in a section; those in its heading count more.
const field = document.querySelector("#search");
const found = document.querySelector("#found");
const article = document.querySelector("article");
const { root } = field.dataset;
/** Address, title of the page, heading and words of each section. */
let sections;

async function load() {
  const answer = await fetch(`${root}search.json`);
  if (!answer.ok) throw new Error(`search.json: ${answer.status}`);
  return answer.json();
}

/** How well a section fits; 0 where a word is missing. */
function fit([, title, heading, text], words) {
  let score = 0;
  for (const word of words) {
    if (heading.toLowerCase().includes(word)) score += 10;
    else if (title.toLowerCase().includes(word)) score += 5;
    else if (text.toLowerCase().includes(word)) score += 1;
    else return 0;
  }
  return score;
}

/** What stands around the first of the words. */
function around(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - 60);
  return (start ? "…" : "") + text.slice(start, start + 160);
}

function entry([address, title, heading, text], words) {
  const [item, link, place, excerpt] = ["li", "a", "small", "small"].map((name) => document.createElement(name));
  link.href = root + address;
  link.textContent = heading;
  link.addEventListener("click", leave);
  place.textContent = title;
  excerpt.textContent = around(text, words);
  item.append(link, ...(title == heading ? [] : [place]), excerpt);
  return item;
}

/** Back to the page. */
function leave() {
  field.value = "";
  show("");
}

async function show(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = !words.length;
  article.hidden = !!words.length;
  if (!words.length) return;
  const title = found.querySelector("h2");
  try {
    sections ??= await load();
  } catch {
    title.textContent = "The search does not work: its index can't be loaded";
    return;
  }
  if (field.value.trim() != query.trim()) return;
  const scored = sections.map((section) => ({ section, score: fit(section, words) })).filter(({ score }) => score);
  scored.sort((one, other) => other.score - one.score);
  title.textContent = scored.length ? `Found: ${scored.length}` : "Nothing has all of these words";
  found.querySelector("ul").replaceChildren(...scored.slice(0, 40).map(({ section }) => entry(section, words)));
}

document.querySelector("search").hidden = false;
field.addEventListener("input", () => show(field.value));
addEventListener("keydown", (event) => {
  if (event.key == "/" && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    field.focus();
  } else if (event.key == "Escape" && event.target == field) {
    leave();
  }
});
