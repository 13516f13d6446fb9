// Reads a request and a secret, and says whether the one is signed with the other.
import { Webhook } from "standardwebhooks";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const { secret, headers, body } = JSON.parse(text);
try {
  new Webhook(secret).verify(body, headers);
  console.log("genuine");
} catch {
  console.log("forged");
}
