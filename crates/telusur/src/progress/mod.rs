//! [`ProgressDisplay`]: what is seen of a running crawl, or of an indexer, on standard error. On a terminal two lines
//! are drawn over again; elsewhere a plain line is written now and then.

mod drawing;
mod indexing;
mod strip;

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use telusur_index::SearchIndex;
use telusur_model::{Moment, Progress};

use crate::terminal::Terminal;

pub use drawing::{Drawing, plain_line};
pub use indexing::{Imported, Indexing, Scrubbed};
pub use strip::{count_parts, leg_text, legend, strip_line};

/// Least time between two drawings: more than ten in a second only flicker.
const REDRAW_MS: u64 = 100;
/// Time between two plain lines: a log of a day stays below ten thousand lines.
const PLAIN_LINE_MS: u64 = 10_000;

/// From so many pages on, putting the search index in order takes seconds, and is said.
const COMPACTION_TOLD_PAGES: u64 = 20_000;

/// Shows a running crawl or an indexer.
pub struct ProgressDisplay {
    form: Form,
    pages_max: Option<u64>,
    shown_at: Option<Moment>,
}

enum Form {
    Hidden,
    Plain(Box<dyn Write + Send>),
    Live { bar: ProgressBar, terminal: Terminal, ticks: usize },
}

impl ProgressDisplay {
    /// A display on standard error, or none if it is not wanted.
    pub fn new(terminal: Terminal, pages_max: Option<u64>, is_wanted: bool) -> Self {
        let form = match (is_wanted, terminal.is_live) {
            (false, _) => Form::Hidden,
            (true, false) => Form::Plain(Box::new(io::stderr())),
            (true, true) => live(ProgressDrawTarget::stderr(), terminal),
        };
        Self { form, pages_max, shown_at: None }
    }

    /// Shows the crawl as it is now, unless it was shown a moment ago.
    pub fn update(&mut self, progress: &Progress, now: Moment) {
        if !self.is_due(now) {
            return;
        }
        let pages_max = self.pages_max;
        self.draw(
            || plain_line(progress, pages_max),
            |terminal, ticks| {
                let drawing = Drawing { progress, pages_max, ticks };
                drawing.lines(terminal.columns, terminal.is_unicode).join("\n")
            },
        );
    }

    /// Shows how far an indexer has come, unless that was shown a moment ago.
    pub fn update_indexing(&mut self, indexing: Indexing, now: Moment) {
        if self.is_due(now) {
            let plain = || indexing.plain_line();
            self.draw(plain, |terminal, ticks| indexing.live_line(terminal, ticks));
        }
    }

    /// Shows how far an import has come, unless that was shown a moment ago.
    pub fn update_imported(&mut self, imported: Imported, now: Moment) {
        if self.is_due(now) {
            let plain = || imported.plain_line();
            self.draw(plain, |terminal, ticks| imported.live_line(terminal, ticks));
        }
    }

    /// Shows how far other work has come, unless that was shown a moment ago.
    pub fn update_work(&mut self, words: impl Fn() -> String, now: Moment) {
        if self.is_due(now) {
            self.draw(&words, |terminal, ticks| indexing::live_line(&words(), terminal, ticks));
        }
    }

    /// Shows how much was read to find damage, unless that was shown a moment ago.
    pub fn update_scrubbed(&mut self, scrubbed: Scrubbed, now: Moment) {
        if self.is_due(now) {
            let plain = || scrubbed.plain_line();
            self.draw(plain, |terminal, ticks| scrubbed.live_line(terminal, ticks));
        }
    }

    fn is_due(&mut self, now: Moment) -> bool {
        let pause_ms = match self.form {
            Form::Hidden => return false,
            Form::Plain(_) => PLAIN_LINE_MS,
            Form::Live { .. } => REDRAW_MS,
        };
        // The first plain line comes after the first pause: before it there is nothing to tell.
        let is_due = match self.shown_at {
            Some(shown_at) => now.ms_since(shown_at) >= pause_ms,
            None => pause_ms == REDRAW_MS,
        };
        if is_due || self.shown_at.is_none() {
            self.shown_at = Some(now);
        }
        is_due
    }

    fn draw(
        &mut self,
        plain: impl FnOnce() -> String,
        live: impl FnOnce(&Terminal, usize) -> String,
    ) {
        match &mut self.form {
            Form::Hidden => {}
            Form::Plain(output) => {
                // If nobody can see it, nothing can be done about it.
                let _ = writeln!(output, "{}", plain());
            }
            Form::Live { bar, terminal, ticks } => {
                *ticks += 1;
                bar.set_message(live(terminal, *ticks));
            }
        }
    }

    /// Writes a line above the display, so that the two do not mix.
    pub fn above(&self, line: &str) {
        match &self.form {
            Form::Live { bar, .. } => bar.println(line),
            Form::Hidden | Form::Plain(_) => {
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }

    /// Says that the search index is being put in order, if that takes more than a moment.
    pub fn tell_compaction(&self, index: &SearchIndex) {
        let takes_long =
            || index.uncompacted_pages().is_ok_and(|pages| pages >= COMPACTION_TOLD_PAGES);
        if !matches!(self.form, Form::Hidden) && takes_long() {
            self.above("putting the search index in order; Ctrl-C leaves it as it is");
        }
    }

    /// For those who say something on standard error while this is drawn.
    pub fn aside(&self) -> Aside {
        match &self.form {
            Form::Live { bar, .. } => Aside(Some(bar.clone())),
            Form::Hidden | Form::Plain(_) => Aside(None),
        }
    }

    /// Takes the display away; the summary stands in its place.
    pub fn finish(self) {
        if let Form::Live { bar, .. } = self.form {
            bar.finish_and_clear();
        }
    }
}

/// Lets others speak beside a display, so that the two do not mix.
pub struct Aside(Option<ProgressBar>);

impl Aside {
    /// Takes the display away while somebody speaks.
    pub fn say(&self, speak: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(speak),
            None => speak(),
        }
    }
}

fn live(target: ProgressDrawTarget, terminal: Terminal) -> Form {
    let style = ProgressStyle::with_template("{msg}").expect("a template without options");
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    Form::Live { bar, terminal, ticks: 0 }
}

#[cfg(test)]
mod tests;
