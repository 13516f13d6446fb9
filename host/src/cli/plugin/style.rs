//! How reports look: colours on a terminal, sizes and times for people.

use std::io::IsTerminal as _;
use std::time::Duration;

/// Whether reports are coloured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    coloured: bool,
}

impl Style {
    /// Coloured on a terminal, unless `NO_COLOR` asks for none.
    pub(super) fn of_terminal() -> Self {
        let asked = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            coloured: asked && std::io::stdout().is_terminal(),
        }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { coloured: false }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// `812 B`, `70.8 KiB`, `18.4 MiB`.
pub(super) fn bytes(number: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let real = number as f64;
    if number < 1 << 10 {
        format!("{number} B")
    } else if number < 1 << 20 {
        format!("{:.1} KiB", real / 1024.0)
    } else {
        format!("{:.1} MiB", real / 1024.0 / 1024.0)
    }
}

/// `87.5 µs`, `1.74 ms`, `2.3 s`.
pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1e-3 {
        format!("{:.1} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}

/// How much of a limit is used: `3.4 %`.
pub(super) fn share(used: f64, limit: f64) -> String {
    format!("{:.1} %", percent(used, limit))
}

/// How much of a limit is used, in percent.
pub(super) fn percent(used: f64, limit: f64) -> f64 {
    if limit > 0.0 {
        used / limit * 100.0
    } else {
        100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(70_761), "69.1 KiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(time(Duration::from_nanos(87_500)), "87.5 µs");
        assert_eq!(time(Duration::from_micros(1740)), "1.74 ms");
        assert_eq!(time(Duration::from_millis(2300)), "2.3 s");
        assert_eq!(share(1.0, 50.0), "2.0 %");
        assert_eq!(share(1.0, 0.0), "100.0 %");
    }

    #[test]
    fn nothing_is_coloured_outside_of_a_terminal() {
        assert_eq!(Style::plain().good("ok"), "ok");
        assert_eq!(Style { coloured: true }.bad("no"), "\u{1b}[31mno\u{1b}[0m");
    }
}
