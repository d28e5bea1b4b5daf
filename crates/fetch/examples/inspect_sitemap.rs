//! Prints what sitemaps and feeds list, one JSON line per entry, and one line of what went wrong to
//! standard error.
//!
//! `cargo run --example inspect_sitemap -- FILE…`

use std::io::Write;

use serde_json::json;
use telusur_fetch::sitemap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        let sitemap = sitemap::read(&std::fs::read(&path)?);
        for entry in &sitemap.entries {
            let line = json!({
                "loc": entry.loc,
                "lastmod": entry.lastmod.as_ref().map(|lastmod| &lastmod.raw),
                "time": entry.lastmod.as_ref().and_then(|lastmod| lastmod.at).map(|at| at.rfc3339()),
                "kind": entry.kind.word(),
                "hreflang": entry.kind.hreflang(),
            });
            writeln!(out, "{line}")?;
        }
        eprintln!(
            "{}: {:?}, {} entries, {} dropped, {}",
            path.display(),
            sitemap.format,
            sitemap.entries.len(),
            sitemap.dropped.total(),
            sitemap.trouble.map_or("read to its end".to_owned(), |trouble| trouble.to_string()),
        );
    }
    Ok(())
}
