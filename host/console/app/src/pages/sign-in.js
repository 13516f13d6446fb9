// How one signs in: by a link that the server has made, or with an OpenID provider.
import { goBack, html, loginAddress, session, signIn, useEffect, useState, waysIn } from "../lib/index.js";
import { Form, Input, LinkButton, Notice, PageHead } from "../ui/index.js";

/** The code in what somebody pasted: a whole link, or the code alone. @param {string} text */
const codeOf = (text) => decodeURIComponent(/#login=(.+)$/.exec(text.trim())?.[1] ?? text.trim());

/** @param {string} issuer */
const nameOf = (issuer) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

/** By a link that the server has made. */
function ByLink() {
  const [text, setText] = useState("");
  const submit = async () => {
    await signIn(codeOf(text));
    goBack();
  };
  return html`<${Form} onSubmit=${submit} submit="Sign in" disabled=${!text.trim()}>
      <${Input} label="Link or code" at="/code" value=${text} onInput=${setText} rest=${{ autocomplete: "off", spellcheck: false }}
        hint="It works once, and for ten minutes." />
    <//>
    <h2>Where do I get a link?</h2>
    <ul>
      <li>At home: <code>nudge dev</code> prints one when it starts.</li>
      <li>On a server: <code>nudge console-link --workspace ID --role ROLE</code> makes one.</li>
      <li>Neither is yours to run? Ask whoever runs this server.</li>
    </ul>`;
}

/** Why a provider has signed nobody in. @type {Record<string, string>} */
const ERRORS = {
  unknown_issuer: "People don't sign in with this provider here. Choose one of those below.",
  provider_unavailable: "The provider does not answer. Try again in a while.",
  login_expired: "It took more than ten minutes, or was begun in another browser. Begin again.",
  login_refused: "The provider did not sign you in. Try again, or ask whoever runs this server for access.",
  login_failed: "What the provider has sent is not good here. Whoever runs this server finds the reason in its log.",
  rate_limited: "Too many have tried from this address. Wait a minute.",
};

/** @param {{ query: Record<string, string> }} props */
export default function SignIn({ query }) {
  const { link, issuers } = waysIn.value;
  useEffect(() => {
    if (session.value) goBack();
  }, [session.value]);
  return html`<div class="card">
    <${PageHead} title="Sign in" />
    ${query.error && html`<${Notice} kind="bad">${ERRORS[query.error] ?? "Nobody was signed in. Try again."} <span class="hint">(<code>${query.error}</code>)</span><//>`}
    ${issuers.length > 0 && html`<p class="stack">${issuers.map((issuer) => html`<${LinkButton} kind="primary" href=${loginAddress(issuer)}>Sign in with ${nameOf(issuer)}<//>`)}</p>`}
    ${link && html`<${ByLink} />`}
    ${!link && !issuers.length && html`<${Notice} kind="warn">Nobody can sign in here yet: whoever runs this server gives one of <code>auth.issuers</code> a <code>clientId</code> in its configuration.<//>`}
  </div>`;
}
