// Makes the page of the API's description. The page's policy (Content-Security-Policy) allows no markup made of text:
// everything becomes elements and their text.
const element = (name, text) => Object.assign(document.createElement(name), { textContent: text ?? "" });
const main = document.querySelector("main");

const describe = ({ path, method, operation }) => {
  const details = element("details"), summary = element("summary");
  const name = element("span", method.toUpperCase());
  name.className = "method";
  summary.append(name, element("code", path), " ", operation.summary ?? operation.description ?? "");
  const security = (operation.security ?? []).map(one => Object.keys(one).join(" + ")).join(" or ");
  details.append(summary, element("p", security ? "Credentials: " + security : "No credentials."));
  for (const part of ["parameters", "requestBody", "responses"])
    if (operation[part]) details.append(element("h4", part), element("pre", JSON.stringify(operation[part], null, 2)));
  return details;
};

const show = api => {
  const byTag = {};
  for (const [path, item] of Object.entries(api.paths))
    for (const [method, operation] of Object.entries(item))
      if (operation.operationId) (byTag[operation.tags?.[0] ?? "other"] ??= []).push({ path, method, operation });
  for (const [tag, operations] of Object.entries(byTag)) main.append(element("h2", tag), ...operations.map(describe));
  main.append(element("h2", "Schemas"), element("pre", JSON.stringify(api.components?.schemas ?? {}, null, 2)));
};

fetch("/openapi.json")
  .then(answer => answer.ok ? answer.json().then(show) : Promise.reject(new Error(`status ${answer.status}`)))
  .catch(error => main.append(element("p", "The description did not arrive (" + error.message + "). Load the page again.")));
