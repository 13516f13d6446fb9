//! What a plugin writes.

use crate::text::visible;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the plugin's author.
    Debug,
    /// For whoever looks.
    Info,
    /// Something is odd.
    Warn,
    /// Something is wrong.
    Error,
}

impl Level {
    /// The level's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// A line of a plugin's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The text.
    pub message: String,
}

/// The log of one call: lines up to a number of bytes, then one line that says that more were cut.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Vec<LogLine>,
    left_bytes: usize,
    cut: bool,
}

impl Log {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            lines: Vec::new(),
            left_bytes: bytes,
            cut: false,
        }
    }

    /// Writes a line for each of the message's, without control characters.
    pub(crate) fn write(&mut self, level: Level, message: &str) {
        // An empty text has no lines, and is one.
        for line in message.lines().chain(message.is_empty().then_some("")) {
            if self.cut {
                return;
            }
            self.write_line(level, line);
        }
    }

    fn write_line(&mut self, level: Level, line: &str) {
        // A line costs its line break too, so that empty lines are not free.
        let Some(room) = self.left_bytes.checked_sub(1) else {
            return self.cut_off();
        };
        let mut message = String::new();
        for character in line.chars().map(visible) {
            if message.len() + character.len_utf8() > room {
                self.lines.push(LogLine { level, message });
                return self.cut_off();
            }
            message.push(character);
        }
        self.left_bytes = room - message.len();
        self.lines.push(LogLine { level, message });
    }

    fn cut_off(&mut self) {
        self.cut = true;
        let message = "the rest of this call's log was cut".to_owned();
        self.lines.push(LogLine {
            level: Level::Warn,
            message,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn take_lines(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(mut log: Log) -> Vec<String> {
        log.take_lines()
            .into_iter()
            .map(|line| line.message)
            .collect()
    }

    #[test]
    fn a_log_is_cut_at_a_character_and_says_so() {
        let mut log = Log::new(8);
        for message in ["four", "aéé", "lost"] {
            log.write(Level::Info, message);
        }
        assert_eq!(
            messages(log),
            ["four", "a", "the rest of this call's log was cut"]
        );
    }

    #[test]
    fn empty_lines_are_not_free() {
        let mut log = Log::new(2);
        for _ in 0..9 {
            log.write(Level::Info, "");
        }
        assert_eq!(
            messages(log),
            ["", "", "the rest of this call's log was cut"]
        );
    }

    #[test]
    fn a_message_of_several_lines_is_several_lines() {
        let mut log = Log::new(100);
        log.write(Level::Info, "one\r\ntwo\u{1b}[2J\n\nfour\n");
        assert_eq!(messages(log), ["one", "two\u{fffd}[2J", "", "four"]);
    }
}
