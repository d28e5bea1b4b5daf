//! Makes `data/languages.bin`: `cargo run --release -p telusur-parse --example learn_languages -- DIR`
//! with a directory of `CODE.tsv` files, one for each language. A line has one letter, or three that
//! follow each other in a word, and the natural logarithm of how often they occur among all letters.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// The most frequent ones are kept of each language: letters, and three letters in a row.
const LETTERS_KEPT: usize = 120;
const THREES_KEPT: usize = 1500;
/// Letters rarer than this count as never seen.
const NEVER: f64 = -12.0;
/// Steps of a weight per factor of e.
const STEPS: f64 = 24.0;

/// Weights by letters, each with the number of its language.
type Weights = BTreeMap<[u8; 6], Vec<(u8, u8)>>;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("which directory?")?;
    let mut files: Vec<_> = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let mut codes = Vec::new();
    let mut weights = Weights::new();
    for (language, file) in files.iter().enumerate() {
        let path = file.path();
        let code = path.file_stem().and_then(|name| name.to_str()).ok_or("no name")?;
        let mut padded = [0; 3];
        padded.get_mut(..code.len()).ok_or("a code is too long")?.copy_from_slice(code.as_bytes());
        codes.push(padded);
        learn(&path, u8::try_from(language)?, &mut weights)?;
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/languages.bin");
    let table = table(&codes, &weights)?;
    println!("{} languages, {} runs of letters, {} bytes", codes.len(), weights.len(), table.len());
    Ok(fs::write(target, table)?)
}

/// Takes in the most frequent letters of a language.
fn learn(path: &Path, language: u8, weights: &mut Weights) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let (mut letters, mut threes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let (run, frequency) = line.split_once('\t').ok_or("a line without a tab")?;
        let frequency: f64 = frequency.parse()?;
        let Some(packed) = packed(run).filter(|_| frequency > NEVER) else { continue };
        let kind = if run.chars().count() == 1 { &mut letters } else { &mut threes };
        kind.push((frequency, packed));
    }
    for (kind, kept) in [(&mut letters, LETTERS_KEPT), (&mut threes, THREES_KEPT)] {
        kind.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        for (frequency, run) in kind.iter().take(kept) {
            let weight = ((frequency - NEVER) * STEPS).round().clamp(1.0, 255.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            weights.entry(*run).or_default().push((language, weight as u8));
        }
    }
    Ok(())
}

/// Letters of two bytes each; `None` for rarer ones.
fn packed(run: &str) -> Option<[u8; 6]> {
    let mut packed = [0; 6];
    for (bytes, letter) in packed.chunks_mut(2).zip(run.chars()) {
        bytes.copy_from_slice(&u16::try_from(u32::from(letter)).ok()?.to_be_bytes());
    }
    Some(packed)
}

fn table(codes: &[[u8; 3]], weights: &Weights) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut table = vec![u8::try_from(codes.len())?];
    table.extend(codes.iter().flatten());
    table.extend(u32::try_from(weights.len())?.to_le_bytes());
    table.extend(weights.keys().flatten());
    let mut start = 0_u32;
    for of_run in weights.values() {
        table.extend(start.to_le_bytes());
        start += u32::try_from(of_run.len())?;
    }
    table.extend(start.to_le_bytes());
    let pairs = weights.values().flatten();
    table.extend(pairs.flat_map(|&(language, weight)| [language, weight]));
    Ok(table)
}
