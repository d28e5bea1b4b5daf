//! What the children of these tests do with their pages.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use telusur_model::{ParsedPage, RawPage};
use telusur_parse::{ContentLimits, ParseLimits, read_for_search, read_page};
use telusur_parse_pool::frames::{
    Batch, Depth, Hello, ParseReply, append_answer, append_took, send_hello,
};
use telusur_parse_pool::{JailReport, VisibleText, Wall, child_main};

use crate::{attempts, deaths};

/// The first argument of a test child; its behaviour is the second.
pub(crate) const COMMAND: &str = "test-child";

/// Runs as a child if the command line asks for one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMMAND {
        return None;
    }
    let behaviour = arguments.next()?;
    Some(match behaviour.to_str()? {
        "jailed" => jailed(arguments),
        "jailed-unless" => {
            // Dies at once when the file exists.
            if std::path::Path::new(&arguments.next()?).exists() {
                return Some(ExitCode::FAILURE);
            }
            jailed(arguments)
        }
        "dies" => ExitCode::FAILURE,
        "greets-badly" => greet_badly(),
        "answers-badly" => answer_with(NONSENSE),
        // Four gigabytes of head, and as much body.
        "answers-too-much" => answer_with(&[3, 255, 255, 255, 255, 255, 255, 255, 255]),
        "answers-twice" => {
            let mut twice = Vec::new();
            for _ in 0..2 {
                append_answer(&mut twice, &ParseReply::Parsed(Box::default())).unwrap();
                append_took(&mut twice, Duration::ZERO).unwrap();
            }
            answer_with(&twice)
        }
        "parent" => deaths::parent_of_a_busy_child(arguments),
        other => panic!("no behaviour {other:?}"),
    })
}

/// A real child: the path of a page says what becomes of it.
fn jailed(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut pages = 0;
    child_main(arguments, |page, depth| {
        pages += 1;
        let parsed = obey(page, pages);
        match depth {
            Depth::Crawl(VisibleText::Left) => {
                ParseReply::Parsed(Box::new(ParsedPage { visible_text: String::new(), ..parsed }))
            }
            Depth::Crawl(VisibleText::Taken) => ParseReply::Parsed(Box::new(parsed)),
            Depth::Search(_) => {
                ParseReply::ForSearch(Box::new(read_for_search(page, &ContentLimits::for_search())))
            }
            Depth::Everything => {
                ParseReply::Read(Box::new(read_page(page, &ContentLimits::default())))
            }
        }
    })
}

/// `pages`: how many this child has seen, this one included.
fn obey(page: &RawPage, pages: u32) -> ParsedPage {
    match page.url.path() {
        "/attempts" => said(attempts::report()),
        "/environment" => said(format!("{:?}", std::env::vars_os().collect::<Vec<_>>())),
        "/loop" => spin(),
        "/work-100-ms" => said(work(Duration::from_millis(100)).to_string()),
        "/loop-unless-first" if pages > 1 => spin(),
        "/eat-200-mib" => said(eat(200).to_string()),
        "/eat-300-mib" => said(eat(300).to_string()),
        "/overflow" => said(nest(u64::from(pages)).to_string()),
        "/abort" => std::process::abort(),
        "/abort-unless-first" if pages > 1 => std::process::abort(),
        "/panic" => panic!("at the sight of {}", page.url),
        "/say-too-much" => said("x".repeat(telusur_parse_pool::frames::FRAME_BYTES_MAX)),
        _ => telusur_parse::parse(page, &ParseLimits::default()),
    }
}

fn said(text: String) -> ParsedPage {
    ParsedPage { visible_text: text, ..ParsedPage::default() }
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Uses this much CPU time, also on a busy machine.
fn work(cpu: Duration) -> u64 {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let (start, mut rounds) = (used(), 0);
    while used() - start < cpu {
        rounds += 1;
    }
    rounds
}

/// Takes memory in small pieces, as a tree grows, and uses it.
fn eat(mebibytes: usize) -> usize {
    let pieces: Vec<_> = (0..mebibytes * 16).map(|_| vec![1_u8; 1 << 16]).collect();
    pieces.iter().map(|piece| piece.len()).sum()
}

fn nest(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    if depth == 0 { 0 } else { nest(depth + 1) + here[5] }
}

const NONSENSE: &[u8] = b"nonsense, and a lot of it";

/// The connection to the parent: standard input.
fn parent() -> UnixStream {
    std::io::stdin().as_fd().try_clone_to_owned().unwrap().into()
}

/// A child that is not jailed and does not speak as it should from the start.
fn greet_badly() -> ExitCode {
    let mut stream = parent();
    stream.write_all(NONSENSE).unwrap();
    // Stays until the parent hangs up.
    let _ = stream.read(&mut [0]);
    ExitCode::SUCCESS
}

/// A child that is not jailed and answers all but the harmless page of the start with these bytes.
fn answer_with(bytes: &[u8]) -> ExitCode {
    let mut stream = parent();
    let jail = JailReport { landlock: Wall::Whole, seccomp: Wall::Whole };
    send_hello(&mut stream, &Hello::new(jail)).unwrap();
    while let Ok(batch) = Batch::read(&mut stream) {
        let pages = batch.pages(&mut stream).unwrap();
        let mut outbox = bytes.to_vec();
        if pages[0].url.host_str() != "a.org" {
            outbox.clear();
            append_answer(&mut outbox, &ParseReply::Parsed(Box::default())).unwrap();
            append_took(&mut outbox, Duration::ZERO).unwrap();
        }
        stream.write_all(&outbox).unwrap();
    }
    ExitCode::SUCCESS
}
