// Measures the trigger under `vm`. Reads lines: `{"texts": […], "fire": […]}` are the events from now on, `{"mode": "…",
// "calls": n}` makes calls and is answered with the nanoseconds that they took, and a list is the events of one call, which
// is answered with the places of those that fire.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [, , file, deadline] = process.argv;
const source = readFileSync(file, "utf8").replace("export ", "");
const definition = new vm.Script(source);
const call = new vm.Script("evaluate(text)");
const both = new vm.Script(`${source}\nevaluate(text)`);
const limits = { timeout: Number(deadline) };
// Code cannot be made of texts, as in the other runtimes.
const closed = { codeGeneration: { strings: false, wasm: false } };

let texts = [];
let fire = [];

const globals = Object.create(null);
vm.createContext(globals, closed);
definition.runInContext(globals);

function reused(text, options) {
    globals.text = text;
    return call.runInContext(globals, options);
}

function fresh(text, options) {
    const own = Object.create(null);
    own.text = text;
    return both.runInContext(vm.createContext(own, closed), options);
}

const modes = {
    reused: (text) => reused(text, limits),
    fresh: (text) => fresh(text, limits),
    reusedWithoutDeadline: (text) => reused(text, undefined),
    freshWithoutDeadline: (text) => fresh(text, undefined),
};

function joined() {
    return `[${texts.join(",")}]`;
}

function round({ mode, calls }) {
    const evaluate = modes[mode];
    const started = process.hrtime.bigint();
    for (let number = 0; number < calls; number += 1) {
        const fired = evaluate(joined());
        if (fired.length !== fire.length || fired.some((place, index) => place !== fire[index])) {
            throw new Error(`${fired} fire`);
        }
    }
    return process.hrtime.bigint() - started;
}

function answer(line) {
    if (line.startsWith("[")) {
        return JSON.stringify(reused(line, limits));
    }
    const message = JSON.parse(line);
    if (message.texts) {
        ({ texts, fire } = message);
        return "0";
    }
    return String(round(message));
}

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
    rest += chunk;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 1);
        process.stdout.write(`${answer(line)}\n`);
    }
});
