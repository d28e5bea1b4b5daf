//! Parser children that obey the path of a page.

use std::hint::black_box;
use std::process::ExitCode;

use telusur_model::RawPage;
use telusur_parse_pool::frames::{Depth, ParseReply};
use telusur_parse_pool::{
    CHILD_COMMAND, InProcess, Parser, PoolError, ReadPage, Reading, child_main,
};

/// Runs as a child if the command line asks for one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != CHILD_COMMAND {
        return None;
    }
    Some(child_main(arguments, |page, depth| {
        obey(page);
        read(page, depth)
    }))
}

fn obey(page: &RawPage) {
    match page.url.path() {
        "/loop" => loop {
            std::hint::spin_loop();
        },
        "/overflow" => drop(black_box(nest(u64::from(page.status)))),
        "/eat" => {
            let mut pieces = Vec::new();
            loop {
                pieces.push(black_box(vec![1_u8; 1 << 16]));
            }
        }
        _ => {}
    }
}

/// Uses a piece of stack, and once more.
#[expect(unconditional_recursion, reason = "that is the point")]
fn nest(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    nest(depth + 1) + here[5]
}

fn read(page: &RawPage, depth: Depth) -> ParseReply {
    let parser = InProcess::default();
    match depth {
        Depth::Crawl(text) => reply(parser.parse_all(&[page], text), ParseReply::Parsed),
        Depth::Search(text) => reply(parser.read_for_search(&[page], text), ParseReply::ForSearch),
        Depth::Everything => reply(parser.read_all(&[page]), ParseReply::Read),
    }
}

fn reply<T>(read: Result<Vec<ReadPage<T>>, PoolError>, of: fn(Box<T>) -> ParseReply) -> ParseReply {
    match read.unwrap().pop().unwrap().reading {
        Reading::Read(found) => of(found),
        Reading::Failed { why } => ParseReply::Panicked(why),
    }
}
