//! [`Terminal`]: what can be shown, and where. [`Talk`]: what is said beside the results.
//!
//! Results go to standard output; everything said here goes to standard error.

use std::io::{self, IsTerminal, Write};

use serde_json::json;

use crate::cli::ColorChoice;
use crate::message::{Message, printable};
use crate::settings::Environment;

/// Columns of a terminal that does not say.
const COLUMNS_DEFAULT: usize = 80;

/// What standard error can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Whether lines can be drawn over again.
    pub is_live: bool,
    /// Whether somebody sits in front of it.
    pub is_attended: bool,
    /// Its width.
    pub columns: usize,
    /// Whether text beyond ASCII can be shown.
    pub is_unicode: bool,
    /// Whether colours are wanted.
    pub is_colored: bool,
}

impl Terminal {
    /// What standard error can show.
    pub fn of_stderr(environment: &Environment, color: ColorChoice) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let measured = rustix::termios::tcgetwinsize(io::stderr()).ok();
        Self::new(environment, color, is_terminal, measured.map(|size| size.ws_col.into()))
    }

    fn new(
        environment: &Environment,
        color: ColorChoice,
        is_terminal: bool,
        measured_columns: Option<usize>,
    ) -> Self {
        let is_dumb = environment.text("TERM") == Some("dumb");
        let named_columns = environment.text("COLUMNS").and_then(|text| text.parse().ok());
        let columns = named_columns.or(measured_columns).filter(|columns| *columns > 0);
        Self {
            is_live: is_terminal && !is_dumb,
            is_attended: is_terminal,
            columns: columns.unwrap_or(COLUMNS_DEFAULT),
            is_unicode: !is_dumb && is_utf8_locale(environment),
            is_colored: wants_color(environment, color, is_terminal),
        }
    }
}

/// Whether colours are wanted on a stream: the flag, then <https://no-color.org>, then the
/// variables that force them, then whether somebody looks.
pub fn wants_color(environment: &Environment, color: ColorChoice, is_terminal: bool) -> bool {
    let is_on = |name| environment.get(name).is_some_and(|value| value != "0");
    match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if environment.get("NO_COLOR").is_some() => false,
        ColorChoice::Auto if is_on("FORCE_COLOR") || is_on("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => is_terminal && environment.text("TERM") != Some("dumb"),
    }
}

fn is_utf8_locale(environment: &Environment) -> bool {
    // The first that is set decides, as in setlocale(3).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.text(name));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Says things to the person at the other end of standard error.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    /// Only errors are said.
    pub is_quiet: bool,
    /// Said as JSON, one object per line.
    pub is_json: bool,
    /// With colours.
    pub is_colored: bool,
}

impl Talk {
    /// Says why the command failed.
    pub fn error(&self, message: &Message) {
        if self.is_json {
            say(&message.json().to_string());
        } else {
            say(&format!("{} {message}", self.styled("error:", "31")));
        }
    }

    /// Says what may surprise the user.
    pub fn warning(&self, text: &str) {
        self.remark("warning", "33", text);
    }

    /// Says what the user may like to know.
    pub fn note(&self, text: &str) {
        self.remark("note", "36", text);
    }

    fn remark(&self, kind: &str, color: &str, text: &str) {
        if self.is_quiet {
            return;
        }
        if self.is_json {
            say(&json!({ kind: text }).to_string());
        } else {
            say(&format!("{} {}", self.styled(&format!("{kind}:"), color), printable(text)));
        }
    }

    fn styled(&self, text: &str, color: &str) -> String {
        if self.is_colored { format!("\x1b[1;{color}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Writes a line to standard error. If nobody can hear it, nothing can be done about it.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(variables: &[(&str, &str)], is_terminal: bool) -> Terminal {
        Terminal::new(&Environment::of(variables), ColorChoice::Auto, is_terminal, Some(100))
    }

    #[test]
    fn colours() {
        let check = |variables: &[(&str, &str)], is_terminal, expect| {
            assert_eq!(terminal(variables, is_terminal).is_colored, expect, "{variables:?}");
        };
        check(&[], true, true);
        check(&[], false, false);
        check(&[("NO_COLOR", "1")], true, false);
        check(&[("NO_COLOR", "")], true, true);
        check(&[("FORCE_COLOR", "1")], false, true);
        check(&[("CLICOLOR_FORCE", "1")], false, true);
        check(&[("CLICOLOR_FORCE", "0")], false, false);
        check(&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true, false);
        check(&[("TERM", "dumb")], true, false);
        let none = Environment::of(&[("NO_COLOR", "1")]);
        assert!(wants_color(&none, ColorChoice::Always, false));
        assert!(!wants_color(&Environment::default(), ColorChoice::Never, true));
    }

    #[test]
    fn width() {
        assert_eq!(terminal(&[], true).columns, 100);
        assert_eq!(terminal(&[("COLUMNS", "40")], true).columns, 40);
        assert_eq!(terminal(&[("COLUMNS", "0")], true).columns, COLUMNS_DEFAULT);
        assert_eq!(terminal(&[("COLUMNS", "wide")], true).columns, 100);
        let unknown = Terminal::new(&Environment::default(), ColorChoice::Auto, true, None);
        assert_eq!(unknown.columns, COLUMNS_DEFAULT);
    }

    #[test]
    fn glyphs_follow_the_locale() {
        assert!(terminal(&[("LANG", "id_ID.UTF-8")], true).is_unicode);
        assert!(terminal(&[("LC_ALL", "C.utf8")], true).is_unicode);
        assert!(!terminal(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], true).is_unicode);
        assert!(!terminal(&[], true).is_unicode);
        assert!(!terminal(&[("LANG", "C.UTF-8"), ("TERM", "dumb")], true).is_unicode);
    }

    #[test]
    fn only_a_capable_terminal_is_drawn_on() {
        assert!(terminal(&[("TERM", "xterm")], true).is_live);
        assert!(!terminal(&[("TERM", "dumb")], true).is_live);
        assert!(!terminal(&[("TERM", "xterm")], false).is_live);
    }
}
