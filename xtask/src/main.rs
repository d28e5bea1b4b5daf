//! Tasks of the project itself, as `cargo xtask TASK`.

mod tidy;

mod torture;
mod torture_damage;

mod guard;
mod manners;
mod misbehave;
mod mutants;

mod abuse;
mod many_crawls;
mod search_load;
mod serve_load;

mod build;
mod load_client;
mod process;
mod service;

use std::process::ExitCode;

use anyhow::Context;
use search_load::SearchLoad;
use telusur_testkit::Along;
use torture_damage::Directory;

const USAGE: &str = "usage:
  cargo xtask tidy                     check rules of the project on its own sources (part of the tests)
  cargo xtask torture [linear] [KILLS] [SEED]   kill a crawl again and again: nothing is lost
  cargo xtask torture follow [KILLS] [SEED]     kill crawls, imports and the indexer beside them: every page
                                       is in the index once
  cargo xtask torture recover [ROUNDS] [SEED]   delete the state of killed crawls, copy running ones: every
                                       acknowledged page comes back
  cargo xtask torture damage [rotated] [COPIES] [SEED] [NUMBER]
                                       damage one file of each copy of a data directory: it has no effect or
                                       is named, and nothing whole is destroyed (rotated: of one whose
                                       journals were rotated; NUMBER: only that copy, which stays)
  cargo xtask torture disk [SEEDS]     change what a simulated disk has synced: no page is lost silently
  cargo xtask torture rm [KILLS] [SEED]         cut removals of crawls short: a crawl is all there or gone
  cargo xtask guard                    lure a crawl inside: no internal address is reached
  cargo xtask manners [KILLS]          give a crawl every occasion to be rude: it is not
  cargo xtask many-crawls [CRAWLS]     what a directory with thousands of crawls costs at rest, at a start and
                                       for a list
  cargo xtask misbehave [SECONDS]      let 300 of 1,000 hosts misbehave: the others keep their rate
  cargo xtask mutants ledger|frontier|guard [COUNT] [SEED] [PART]
                                       change the code in so many places, one at a time: its tests notice
                                       (PART: only those of the sample with it in their names)
  cargo xtask abuse [ATTACK]...        attack a service: what it costs everybody else, as a table
                                       (fairness, outage, drips, costs, hang-ups, secrets; all of them if
                                       none is named)
  cargo xtask search-load [in DIRECTORY] DOCUMENTS CLIENTS TEXTS.jsonl...
                                       let clients search a service with so many documents, made of
                                       the sentences of the texts: how long they wait (the index
                                       stays in DIRECTORY, and is used again)
  cargo xtask serve-load [SECONDS]     search, watch, stall and flood the service: it stays quick and small
                                       (0 SECONDS: only the flood)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a task; false: there is no such task.
fn run(arguments: &[String]) -> anyhow::Result<bool> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => tidy::tidy()?,
        ["torture", "linear", numbers @ ..] if numbers.len() <= 2 => {
            let kills = u32::try_from(number(numbers, 0, 100)?).context("too many kills")?;
            torture::torture(Along::Numbers, kills, number(numbers, 1, 1)?)?;
        }
        ["torture", "follow", numbers @ ..] if numbers.len() <= 2 => {
            let kills = u32::try_from(number(numbers, 0, 1000)?).context("too many kills")?;
            torture::torture_following(kills, number(numbers, 1, 1)?)?;
        }
        ["torture", "recover", numbers @ ..] if numbers.len() <= 2 => {
            let rounds = u32::try_from(number(numbers, 0, 50)?).context("too many rounds")?;
            torture::torture_recovering(rounds, number(numbers, 1, 1)?)?;
        }
        ["torture", "damage", "rotated", numbers @ ..] if numbers.len() <= 3 => {
            torture_damage(Directory::Rotated, numbers, 80)?;
        }
        ["torture", "damage", numbers @ ..] if numbers.len() <= 3 => {
            torture_damage(Directory::Small, numbers, 560)?;
        }
        ["torture", "disk", numbers @ ..] if numbers.len() <= 1 => {
            torture_damage::disk(number(numbers, 0, 10_000)?)?;
        }
        ["torture", "rm", numbers @ ..] if numbers.len() <= 2 => {
            let kills = u32::try_from(number(numbers, 0, 100)?).context("too many kills")?;
            torture::torture_removing(kills, number(numbers, 1, 1)?)?;
        }
        ["torture", numbers @ ..] if numbers.len() <= 2 => {
            let kills = u32::try_from(number(numbers, 0, 200)?).context("too many kills")?;
            torture::torture(Along::Links, kills, number(numbers, 1, 1)?)?;
        }
        ["guard"] => guard::guard()?,
        [guard::INSIDE, program, scratch] => guard::on_the_island(program, scratch)?,
        ["manners", numbers @ ..] if numbers.len() <= 1 => {
            let kills = usize::try_from(number(numbers, 0, 5)?).context("too many kills")?;
            manners::manners(kills)?;
        }
        ["many-crawls", numbers @ ..] if numbers.len() <= 1 => {
            many_crawls::many_crawls(number(numbers, 0, 5_000)?)?;
        }
        ["misbehave", numbers @ ..] if numbers.len() <= 1 => {
            misbehave::misbehave(number(numbers, 0, 60)?)?;
        }
        ["mutants", area, words @ ..] if words.len() <= 3 => {
            let Some(area) = mutants::Area::named(area) else { return Ok(false) };
            let count = usize::try_from(number(words, 0, 100)?).context("too many mutants")?;
            mutants::mutants(&area, count, number(words, 1, 1)?, words.get(2).copied())?;
        }
        ["abuse", names @ ..] => abuse::abuse(names)?,
        ["serve-load", numbers @ ..] if numbers.len() <= 1 => {
            serve_load::serve_load(number(numbers, 0, 15)?)?;
        }
        ["search-load", "in", directory, words @ ..] if words.len() > 2 => {
            search_load(words, Some(directory))?;
        }
        ["search-load", words @ ..] if words.len() > 2 => search_load(words, None)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn torture_damage(directory: Directory, numbers: &[&str], copies: u64) -> anyhow::Result<()> {
    let copies = usize::try_from(number(numbers, 0, copies)?).context("too many copies")?;
    let only = numbers.get(2).map(|_| number(numbers, 2, 0)).transpose()?;
    let only = only.map(usize::try_from).transpose().context("the number of a copy")?;
    torture_damage::damage(directory, copies, number(numbers, 1, 1)?, only)
}

fn search_load(words: &[&str], keep_in: Option<&str>) -> anyhow::Result<()> {
    let clients = usize::try_from(number(words, 1, 8)?).context("too many clients")?;
    let documents = number(words, 0, 0)?;
    SearchLoad { documents, clients, texts: &words[2..], keep_in }.run()
}

fn number(words: &[&str], index: usize, default: u64) -> anyhow::Result<u64> {
    match words.get(index) {
        Some(text) => text.parse().with_context(|| format!("{text:?} is not a number")),
        None => Ok(default),
    }
}
