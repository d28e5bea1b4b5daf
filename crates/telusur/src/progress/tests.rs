use std::io;
use std::sync::{Arc, Mutex};

use indicatif::TermLike;
use telusur_model::{CrawlNo, CrawlState, CrawlStats, SiteShare};

use super::*;

fn progress() -> Progress {
    let site = |name: &str, pages| SiteShare { site: name.to_owned(), pages, queued: 1 };
    Progress {
        walks: Vec::new(),
        parked: Vec::new(),
        parse_backlog: Vec::new(),
        suspects_network: false,
        retry_after_ms: None,
        index_lag: 0,
        followers_behind: Vec::new(),
        crawl: CrawlNo(1),
        state: CrawlState::Running,
        stats: CrawlStats {
            queued: 2_034,
            pages: 1_240,
            ok: 1_219,
            wire_bytes: 48_211_034,
            statuses: [(200, 1_198), (301, 21), (404, 17), (503, 4)].into(),
            ..CrawlStats::default()
        },
        in_flight: 8,
        pages_per_second: 21.43,
        eta_s: Some(175),
        sites: vec![site("kompas.com", 414), site("detik.com", 413), site("bola.com", 413)],
        sites_total: 3,
        fairness_index: 1.0,
    }
}

#[track_caller]
fn check(pages_max: Option<u64>, columns: usize, is_unicode: bool, expect: &[&str]) {
    let progress = progress();
    let drawing = Drawing { progress: &progress, pages_max, ticks: 2 };
    assert_eq!(drawing.lines(columns, is_unicode), expect);
}

#[test]
fn a_wide_terminal_shows_all() {
    check(
        Some(5_000),
        101,
        true,
        &[
            "  ⠹ 1,240 / 5,000  ████▍░░░░░░░░░░░░░  24%   21.4/s   queue 2,034   err 21   48 MB   eta 2m55s",
            "    kompas.com 414 · detik.com 413 · bola.com 413                    200:1198  301:21  404:17  503:4",
        ],
    );
}

#[test]
fn without_a_limit_there_is_no_bar() {
    check(
        None,
        81,
        true,
        &[
            "  ⠹ 1,240 pages   21.4/s   queue 2,034   err 21   48 MB   eta 2m55s",
            "    kompas.com 414 · detik.com 413               200:1198  301:21  404:17  503:4",
        ],
    );
}

#[test]
fn without_unicode_there_is_ascii() {
    check(
        Some(5_000),
        81,
        false,
        &[
            "  - 1,240 / 5,000  ####..............  24%   21.4/s   queue 2,034   err 21",
            "    kompas.com 414 | detik.com 413               200:1198  301:21  404:17  503:4",
        ],
    );
}

#[test]
fn a_narrow_terminal_has_one_line() {
    check(Some(5_000), 60, true, &["⠹ 1240/5000 pages 21.4/s queue=2034 err=21"]);
    check(Some(5_000), 11, false, &["- 1240/500"]);
    check(Some(5_000), 1, true, &[""]);
    check(Some(5_000), 0, true, &[""]);
}

#[test]
fn no_width_and_no_count_breaks_a_line() {
    for columns in 0..200 {
        for pages in [0, 1, 999, 5_000, u64::MAX / 200] {
            let mut progress = progress();
            progress.stats.pages = pages;
            progress.stats.ok = 0;
            progress.sites[0].site = "\u{1b}[2J".repeat(40);
            for pages_max in [None, Some(1), Some(5_000), Some(u64::MAX / 200)] {
                let drawing = Drawing { progress: &progress, pages_max, ticks: 7 };
                for line in drawing.lines(columns, true) {
                    assert!(line.chars().count() < columns.max(1), "{columns}: {line}");
                    assert!(!line.contains('\u{1b}'));
                }
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_pipe_gets_a_plain_line_each_ten_seconds() {
    let paper = Paper::default();
    let mut display = ProgressDisplay {
        form: Form::Plain(Box::new(paper.clone())),
        pages_max: Some(5_000),
        shown_at: None,
    };
    for second in 0..=25 {
        display.update(&progress(), Moment(second * 1_000));
    }
    display.finish();
    assert_eq!(paper.text(), "1240/5000 pages 21.4/s queue=2034 err=21\n".repeat(2));
}

/// Counts drawings.
#[derive(Clone, Debug, Default)]
struct Screen(Paper);

impl TermLike for Screen {
    fn width(&self) -> u16 {
        100
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.clone().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_terminal_is_drawn_on_ten_times_a_second_at_most() {
    let terminal = Terminal {
        is_live: true,
        is_attended: true,
        columns: 100,
        is_unicode: true,
        is_colored: false,
    };
    let screen = Screen::default();
    let mut display = ProgressDisplay {
        form: live(ProgressDrawTarget::term_like(Box::new(screen.clone())), terminal),
        pages_max: None,
        shown_at: None,
    };
    for ms in 0..1_000 {
        display.update(&progress(), Moment(ms));
    }
    let drawn = screen.0.text().matches("1,240 pages").count();
    assert!((1..=10).contains(&drawn), "{drawn}");
}

#[test]
fn pages_that_cannot_be_found_yet_are_counted() {
    let progress = Progress { index_lag: 1_312, ..progress() };
    let drawing = Drawing { progress: &progress, pages_max: None, ticks: 2 };
    assert!(drawing.lines(100, false)[0].ends_with("   to index 1,312"));
    assert!(plain_line(&progress, None).ends_with(" err=21 to_index=1312"));
    // So are those that others have not got yet.
    let progress = Progress { followers_behind: vec![("postgres".into(), 70)], ..progress };
    let drawing = Drawing { progress: &progress, pages_max: None, ticks: 2 };
    assert!(drawing.lines(140, false)[0].ends_with("   to index 1,312   postgres behind 70"));
    assert!(plain_line(&progress, None).ends_with(" to_index=1312 postgres_behind=70"));
}
