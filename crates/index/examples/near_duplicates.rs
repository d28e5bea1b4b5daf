//! Lists the pairs of texts that say nearly the same, for measuring precision and recall.
//!
//!     cargo run --release -p telusur-index --example near_duplicates -- TEXTS.jsonl
//!
//! Every line of the file has an `id` and a `text`.

use std::error::Error;
use std::fs;

use telusur_index::Sketch;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let mut sketches = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let text = line["text"].as_str().unwrap_or_default();
        sketches.push((line["id"].as_str().unwrap_or_default().to_owned(), Sketch::of(text)));
    }
    for (at, (id, sketch)) in sketches.iter().enumerate() {
        for (other_id, other) in &sketches[at + 1..] {
            if sketch.is_near(*other) {
                println!("{id} {other_id} {}", (sketch.0 ^ other.0).count_zeros());
            }
        }
    }
    Ok(())
}
