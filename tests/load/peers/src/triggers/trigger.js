// The trigger for JavaScript engines. Takes the JSON text of a list of properties, and gives the places of those that fire.
export function evaluate(text) {
    const events = JSON.parse(text);
    const fired = [];
    for (let place = 0; place < events.length; place += 1) {
        const { amount, plan, country } = events[place];
        if (typeof amount === "number" && amount >= 10 && plan === "pro" && (country === "DE" || country === "FR")) {
            fired.push(place);
        }
    }
    return fired;
}
