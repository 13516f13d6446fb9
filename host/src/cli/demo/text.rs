//! The report for a terminal of 100 columns.

use std::fmt::{Display, Formatter, Result};

use super::report::{Report, Requests};

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.events(out)?;
        self.surveys(out)?;
        self.examples(out)?;
        self.message(out)?;
        self.segment(out)?;
        self.speed(out)?;
        self.checks(out)?;
        self.next(out)
    }
}

impl Report {
    fn events(&self, out: &mut Formatter<'_>) -> Result {
        let traffic = &self.traffic;
        writeln!(out, "Events sent by {} people", grouped(traffic.people))?;
        writeln!(out, "  {:>8}  sent", grouped(traffic.sent))?;
        writeln!(
            out,
            "  {:>8}  accepted, {} of them sent again by their SDK and stored once",
            grouped(traffic.accepted),
            grouped(traffic.accepted_again)
        )?;
        writeln!(out, "  {:>8}  rejected", grouped(traffic.rejected))?;
        for (reason, count) in &traffic.reasons {
            writeln!(out, "  {:>16}  {reason}", grouped(*count))?;
        }
        writeln!(out, "\nDead letters: kept, to look at and replay")?;
        for letters in &self.dead_letters {
            // What plugins fail on has a reason only; a broken definition says what is broken.
            let what = match letters.violation.as_str() {
                "" => &letters.reason,
                violation => violation,
            };
            let count = grouped(letters.count);
            writeln!(out, "  {count:>8}  {}: {what}", letters.event_name)?;
        }
        Ok(())
    }

    fn surveys(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "\nSurveys that fired                        at once")?;
        for survey in &self.surveys {
            writeln!(
                out,
                "  {:>8}  {:<28}  {:>7}  {}",
                grouped(survey.fired),
                survey.name,
                grouped(survey.at_once),
                survey.waits_for
            )?;
        }
        writeln!(
            out,
            "  at once: in the answer to the request with the event; all others came with a poll"
        )
    }

    fn examples(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "\nWhy {} of them fired", self.examples.len())?;
        for (index, example) in self.examples.iter().enumerate() {
            let matched = match &example.matched[..] {
                [] => "the event's name; the survey has no filter".to_owned(),
                matched => matched.join("; "),
            };
            writeln!(out, "  {}  {}", index + 1, example.survey)?;
            writeln!(out, "     person    {}", example.person)?;
            writeln!(
                out,
                "     event     {} of {}, {}",
                example.event, example.happened_at, example.event_id
            )?;
            writeln!(out, "     matched   {matched}")?;
            writeln!(
                out,
                "     decided   {} {}, for campaign {} version {}",
                example.plugin,
                example.plugin_version,
                example.campaign_id,
                example.campaign_version
            )?;
        }
        Ok(())
    }

    fn message(&self, out: &mut Formatter<'_>) -> Result {
        let shown = &self.message;
        let total = |name: &str| shown.totals.get(name).map(ToString::to_string);
        let total = |name: &str| total(name).unwrap_or_default();
        writeln!(out, "\nAn in-app message")?;
        writeln!(
            out,
            "  {:<9}  {} sends {}",
            "fired by", shown.person, shown.event
        )?;
        writeln!(
            out,
            "  {:<9}  \"{}\", as a {}, in the answer to that request",
            "shown", shown.title, shown.layout
        )?;
        writeln!(
            out,
            "  {:<9}  the button {}, which the SDK acknowledges",
            "pressed", shown.pressed
        )?;
        writeln!(
            out,
            "  {:<9}  {} recipient, {} displayed, {} clicked, for campaign {}",
            "counted",
            total("recipients"),
            total("displayed"),
            total("clicked"),
            shown.campaign_id
        )
    }

    fn segment(&self, out: &mut Formatter<'_>) -> Result {
        let entered = &self.segment;
        writeln!(out, "\nA segment: {}", entered.name)?;
        writeln!(
            out,
            "  {:<9}  {} of {} people",
            "size", entered.size, self.traffic.people
        )?;
        writeln!(
            out,
            "  {:<9}  {} sends {} {} times, and a survey for those who enter is on offer",
            "entered", entered.person, entered.event, entered.purchases
        )?;
        writeln!(out, "  {:<9}  {}", "did", entered.timeline.join(", "))
    }

    fn speed(&self, out: &mut Formatter<'_>) -> Result {
        let (traffic, seconds) = (&self.traffic, &self.seconds);
        let (sent, processors) = (real(traffic.sent), self.processors);
        writeln!(
            out,
            "\nTime: {} build, {processors} processors, SDKs and server on the same ones",
            self.build
        )?;
        let whole = seconds.send + seconds.settle;
        writeln!(
            out,
            "  {:>9}  events a second: sent, committed and evaluated",
            separated(&format!("{:.0}", sent / whole))
        )?;
        writeln!(
            out,
            "  {:>7.2} s  from the first request to the last answer",
            seconds.send
        )?;
        writeln!(
            out,
            "  {:>7.2} s  until the last event was evaluated, after that",
            seconds.settle
        )?;
        writeln!(out, "  {:>7.2} s  to poll as everybody", seconds.poll)?;
        writeln!(
            out,
            "  {:>7.2} s  to start the server, with the compilation of its plugins",
            seconds.start
        )?;
        requests(
            out,
            &traffic.with_delivery,
            "that wait for what their events fire",
        )?;
        requests(
            out,
            &traffic.without_delivery,
            "that wait for the commit only",
        )?;
        writeln!(
            out,
            "\nPlugins               version     calls   failed      total      a call    an event"
        )?;
        for plugin in &self.plugins {
            writeln!(
                out,
                "  {:<18}  {:<8}  {:>6.0}   {:>6.0}  {:>6.0} ms  {:>7.0} us  {:>6.1} us",
                plugin.plugin,
                plugin.version,
                plugin.calls,
                plugin.failed,
                plugin.seconds * 1e3,
                plugin.seconds / plugin.calls * 1e6,
                plugin.seconds / sent * 1e6,
            )?;
        }
        Ok(())
    }

    fn checks(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(out, "\nChecks")?;
        for check in &self.checks {
            let mark = if check.passed { "ok" } else { "FAILED" };
            writeln!(out, "  {mark:<6}  {}: {}", check.name, check.detail)?;
        }
        Ok(())
    }

    fn next(&self, out: &mut Formatter<'_>) -> Result {
        let program = std::env::args()
            .next()
            .unwrap_or_else(|| "nudge".to_owned());
        writeln!(out, "\nNext")?;
        if let Some(directory) = &self.kept {
            writeln!(out, "  {program} dev --data-dir {}", directory.display())?;
            writeln!(
                out,
                "      this server again, with everything above in it; then, with what it prints:"
            )?;
            write!(
                out,
                "  curl $BASE_URL/v1/apps/$APP/dead-letters -H \"Authorization: Bearer $VIEWER_TOKEN\"\n      \
                 what was refused, and why"
            )
        } else {
            writeln!(out, "  {program} dev")?;
            writeln!(
                out,
                "      a server of your own; it prints pages to open and the curl of a first event"
            )?;
            write!(
                out,
                "  {program} demo --keep\n      this again, with a server to look around in afterwards"
            )
        }
    }
}

fn requests(out: &mut Formatter<'_>, requests: &Requests, which: &str) -> Result {
    if requests.count == 0 {
        return Ok(());
    }
    let Requests {
        count,
        p50_ms,
        p99_ms,
    } = requests;
    writeln!(
        out,
        "  {p50_ms:>6.1} ms  p50, {p99_ms:.1} ms p99 of {} requests {which}",
        grouped(*count)
    )
}

/// A count for a quotient.
fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// `20570` as `20,570`.
fn grouped(count: usize) -> String {
    separated(&count.to_string())
}

fn separated(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!(
            [0, 999, 1_000, 20_570, 1_234_567].map(grouped).join(" "),
            "0 999 1,000 20,570 1,234,567"
        );
    }
}
