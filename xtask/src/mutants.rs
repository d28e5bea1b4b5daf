//! `cargo xtask mutants AREA`: changes the code in a hundred places, one at a time, and checks that the tests of its
//! own crate fail. Needs `cargo install cargo-mutants`.
//!
//! Which hundred is fixed by a seed: the mutants with the lowest hashes of their names without line numbers. So most of
//! a sample stays when code is added or moved.
//!
//! First the quick tests of the crate run; what they do not notice is tried again with all of its tests.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Of the mutants that compile, how many the tests must catch, in percent.
const CAUGHT_PERCENT_MIN: usize = 95;
/// Cases of the property tests that have thousands in an ordinary run.
const PROPERTY_CASES: &str = "100";
/// The tests of each of these crates take 20 s at most: more means that a mutant loops.
const TIMEOUT_S: &str = "120";

/// What is mutated, and what tests it.
pub(crate) struct Area {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    except: &'static [&'static str],
    /// Arguments that leave out what is slow.
    quick: &'static [&'static str],
}

/// The ledger without its suite for storages, which is tests; and of the fetcher what guards addresses.
const AREAS: [Area; 3] = [
    Area {
        name: "ledger",
        package: "telusur-ledger",
        files: &[],
        except: &["crates/ledger/src/conformance.rs", "crates/ledger/src/conformance/**"],
        quick: &["--lib", "--tests", "--", "--skip", "folding::"],
    },
    Area {
        name: "frontier",
        package: "telusur-frontier",
        files: &[],
        except: &[],
        quick: &["--lib", "--", "--skip", "cost::", "--skip", "politeness::", "--skip", "model::"],
    },
    Area {
        name: "guard",
        package: "telusur-fetch",
        files: &["crates/fetch/src/guard/**", "crates/fetch/src/connector.rs"],
        except: &[],
        quick: &["--lib", "--", "guard::", "connector::"],
    },
];

impl Area {
    pub(crate) fn named(name: &str) -> Option<Self> {
        AREAS.into_iter().find(|area| area.name == name)
    }

    fn cargo_mutants(&self) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.args(["mutants", "--package", self.package]);
        for glob in self.files {
            command.args(["--file", glob]);
        }
        for glob in self.except {
            command.args(["--exclude", glob]);
        }
        command
    }

    /// The names of all mutants, each with the line that it is in.
    fn mutants(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.cargo_mutants().args(["--list", "--json"]).output();
        let listed = listed.context("run cargo mutants")?;
        if !listed.status.success() {
            bail!("cargo mutants --list: {}", String::from_utf8_lossy(&listed.stderr));
        }
        let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout)?;
        let name = |mutant: &serde_json::Value| mutant["name"].as_str().map(str::to_owned);
        let names = listed.iter().map(|mutant| name(mutant).context("a mutant without a name"));
        // Some have the same name at the same place, and run together.
        let mut names = names.collect::<anyhow::Result<Vec<_>>>()?;
        names.dedup();
        Ok(names)
    }
}

/// Runs the sample of one area. `only`: those whose names contain it.
pub(crate) fn mutants(
    area: &Area,
    count: usize,
    seed: u64,
    only: Option<&str>,
) -> anyhow::Result<()> {
    let all = area.mutants()?;
    let mut sample = sample_of(&all, count, seed);
    sample.retain(|name| only.is_none_or(|part| name.contains(part)));
    println!("{}: {} of {} mutants, seed {seed}", area.name, sample.len(), all.len());
    let quickly = area.run(&sample, "quick", area.quick)?;
    let fully = match quickly.missed.is_empty() {
        true => Outcomes::default(),
        false => area.run(&quickly.missed, "all", &[])?,
    };
    let (caught, missed) = (quickly.caught + fully.caught, &fully.missed);
    missed.iter().for_each(|name| println!("not caught: {name}"));
    let viable = caught + missed.len();
    println!("{caught} of {viable} caught; {} do not compile", quickly.unviable);
    if viable + quickly.unviable < sample.len() {
        bail!("only {} mutants were run", viable + quickly.unviable);
    }
    if caught * 100 < viable * CAUGHT_PERCENT_MIN {
        bail!("fewer than {CAUGHT_PERCENT_MIN} % were caught");
    }
    Ok(())
}

/// What came of some mutants.
#[derive(Debug, Default)]
struct Outcomes {
    /// The tests failed, or took far too long.
    caught: usize,
    missed: Vec<String>,
    unviable: usize,
}

impl Outcomes {
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let lines = |file: &str| -> anyhow::Result<Vec<String>> {
            let text =
                fs::read_to_string(dir.join(file)).with_context(|| format!("read {file}"))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let timed_out = lines("timeout.txt")?;
        timed_out.iter().for_each(|name| println!("caught by the timeout: {name}"));
        Ok(Self {
            caught: lines("caught.txt")?.len() + timed_out.len(),
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?.len(),
        })
    }
}

impl Area {
    /// Runs tests with each of these mutants.
    fn run(&self, names: &[String], pass: &str, arguments: &[&str]) -> anyhow::Result<Outcomes> {
        let out = format!("target/mutants/{}-{pass}", self.name);
        fs::create_dir_all(&out).context("make the directory of the outcomes")?;
        let mut command = self.cargo_mutants();
        command.args(["--no-shuffle", "--timeout", TIMEOUT_S, "--output", &out]);
        for name in names {
            command.arg("--re").arg(format!("^{}$", escaped(name)));
        }
        command.arg("--").args(arguments);
        // It fails when a mutant is not caught, which is judged later.
        command.env("PROPTEST_CASES", PROPERTY_CASES).status().context("run cargo mutants")?;
        Outcomes::read(&Path::new(&out).join("mutants.out"))
    }
}

fn sample_of(all: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut times: HashMap<String, u64> = HashMap::new();
    let mut hashed: Vec<(u64, &String)> = Vec::with_capacity(all.len());
    for name in all {
        let plain = without_place(name);
        let time = times.entry(plain.clone()).or_default();
        hashed.push((hash(&format!("{seed} {time} {plain}")), name));
        *time += 1;
    }
    hashed.sort_unstable();
    hashed.into_iter().take(count).map(|(_, name)| name.clone()).collect()
}

/// `file:12:5: replace …` without line and column.
fn without_place(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    let (file, rest) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
    format!("{file}:{rest}")
}

/// FNV-1a, mixed as in `splitmix64`: the same on every machine and in every version.
fn hash(text: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A regular expression for a name itself. `<` and `>` must not be escaped.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_does_not_depend_on_lines() {
        let names = |line: u32| -> Vec<String> {
            (0..50).map(|n| format!("a.rs:{}:5: replace f{} with ()", line + n, n / 2)).collect()
        };
        let plain = |line| -> Vec<String> {
            sample_of(&names(line), 10, 1).iter().map(|name| without_place(name)).collect()
        };
        assert_eq!(plain(1), plain(1_000));
        assert_eq!(plain(1).len(), 10);
        assert_ne!(sample_of(&names(1), 10, 1), sample_of(&names(1), 10, 2));
    }

    #[test]
    fn a_name_matches_itself_only() {
        assert_eq!(escaped("a.rs:1:2: <T>::f(x)"), r"a\.rs\:1\:2\: <T>\:\:f\(x\)");
    }
}
