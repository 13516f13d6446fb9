"use strict";
// A shop as any page could be. What is special about it is the side: it notes the SDK's requests and asks the server
// for the reasons of its decisions, with a token that no real page would have.

const $ = (id) => document.getElementById(id);
const element = (name, text, className) => Object.assign(document.createElement(name), { textContent: text ?? "", className: className ?? "" });
const products = [["Tea", 4], ["Honey", 9], ["Teapot", 35]];
const cart = [];

// What was sent.

const ask = window.fetch;
let subjectId;
window.fetch = async (input, init) => {
  const url = String(input.url ?? input);
  const answered = ask(input, init);
  const path = new URL(url, location.href).pathname;
  if (!path.startsWith("/v1/sdk/") || path.endsWith("/instructions")) return answered;
  const body = init?.body ? JSON.parse(String(init.body).split("\n").at(-1)) : {};
  const item = element("li");
  const names = body.events?.map((event) => event.name).join(", ");
  const detail = names ?? Object.keys(body).join(", ");
  item.append(element("strong", path.replace("/v1/sdk/", "")), ` ${detail}`);
  $("requests").prepend(item);
  const response = await answered;
  item.append(` → ${response.status}`);
  if (path.endsWith("/session") && response.ok && response.status == 200) {
    subjectId = (await response.clone().json()).data.subject.subjectId;
  }
  if (response.ok) for (const event of body.events ?? []) void explain(event);
  return response;
};

// What was decided, and why.

let opening;
async function explain({ eventId, name }) {
  if (name != "order_placed" || !subjectId) return;
  const query = new URLSearchParams({ campaignId: opening.surveyId, subjectId, eventId });
  const headers = { authorization: `Bearer ${opening.viewerToken}` };
  for (let tries = 0; tries < 20; tries++) {
    const answer = await ask(`/v1/apps/${opening.appId}/explain?${query}`, { headers });
    if (answer.ok) return show(name, (await answer.json()).data);
    await new Promise((done) => setTimeout(done, 250));
  }
}

function show(name, { outcome, steps }) {
  const item = element("li");
  item.append(element("strong", name), ` → ${outcome.replaceAll("_", " ")}`);
  const list = element("ul");
  for (const { check, passed, detail } of steps) {
    const text = detail === undefined || detail === null ? "" : `: ${typeof detail == "string" ? detail : JSON.stringify(detail)}`;
    list.append(element("li", check.replaceAll("_", " ") + text, passed ? "yes" : "no"));
  }
  item.append(list);
  $("decisions").prepend(item);
}

// The shop.

function count() {
  const total = cart.reduce((sum, [, price]) => sum + price, 0);
  $("total").textContent = cart.length ? `${cart.map(([name]) => name).join(", ")}: ${total}` : "Nothing in it.";
  $("buy").disabled = !cart.length;
  return total;
}

async function open() {
  const answer = await ask("/demo/opening");
  if (!answer.ok) throw new Error(`the shop can't be opened: ${answer.status}`);
  opening = (await answer.json()).data;
  const nudge = window.Nudge.init({ writeKey: opening.writeKey });
  nudge.on("error", ({ code, message }) => $("requests").prepend(element("li", `error ${code}: ${message}`)));
  nudge.screen("shop");
  for (const [name, price] of products) {
    const item = element("li");
    const button = element("button", "Add to cart");
    button.setAttribute("aria-label", `Add ${name} to cart`);
    button.addEventListener("click", () => {
      cart.push([name, price]);
      nudge.track("cart_updated", { added: name, total: count() });
    });
    item.append(element("h3", name), element("p", String(price)), button);
    $("products").append(item);
  }
  $("buy").addEventListener("click", () => {
    nudge.track("order_placed", { total: count(), items: cart.length });
    cart.length = 0;
    count();
  });
  $("sign-in").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = $("name").value;
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name }) };
    const answer = await ask("/demo/sign-in", init);
    if (!answer.ok) return;
    nudge.identify((await answer.json()).data.identityToken);
    nudge.set({ name });
    $("who").textContent = `${name} has signed in.`;
    $("sign-out").hidden = false;
  });
  // Before somebody listens, a browser would send the form and load the page anew.
  $("enter").disabled = false;
  $("sign-out").addEventListener("click", () => {
    nudge.reset();
    $("who").textContent = "Nobody has signed in.";
    $("sign-out").hidden = true;
  });
}

open().catch((error) => ($("who").textContent = String(error)));
