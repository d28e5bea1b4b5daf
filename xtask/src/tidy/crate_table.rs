//! The table of `crates/README.md`: its rows are the folders of `crates/`, in any order, and "may depend on
//! (ours)" is exactly what each manifest depends on. What only tests depend on is not in the table.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::source_tree::SourceTree;

const TABLE: &str = "crates/README.md";

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let Some(text) = tree.text(TABLE) else {
        return vec![Violation::new(TABLE, 0, "is missing")];
    };
    let rows = rows(text);
    let mut violations = Vec::new();
    for name in tree.crates().into_iter().filter(|name| !rows.contains_key(name)) {
        violations.push(Violation::new(TABLE, 0, format!("no row for `{name}`")));
    }
    for (name, row) in &rows {
        let manifest = format!("crates/{name}/Cargo.toml");
        match tree.text(&manifest).map(our_dependencies) {
            None => violations.push(Violation::new(TABLE, row.line, format!("no crate `{name}`"))),
            Some(Err(error)) => violations.push(Violation::new(&manifest, 0, error)),
            Some(Ok(found)) => {
                violations.extend(differences(name, row, &found));
            }
        }
    }
    violations
}

struct Row<'a> {
    line: usize,
    may_depend_on: BTreeSet<&'a str>,
}

/// Rows of the form "| `name` | one line | name, name |"; a dash stands for none.
fn rows(text: &str) -> BTreeMap<&str, Row<'_>> {
    let mut rows = BTreeMap::new();
    for (line, row) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        let (Some(name), Some(listed)) = (name, cells.get(2)) else { continue };
        let listed = listed.split(',').map(|name| name.trim().trim_matches('`'));
        let may_depend_on = listed.filter(|name| *name != "–").collect();
        rows.insert(name, Row { line, may_depend_on });
    }
    rows
}

fn differences(name: &str, row: &Row<'_>, found: &BTreeSet<String>) -> Vec<Violation> {
    let says = |what: String| Violation::new(TABLE, row.line, what);
    let missing = found.iter().filter(|it| !row.may_depend_on.contains(it.as_str()));
    let unused = row.may_depend_on.iter().filter(|it| !found.contains(**it));
    let missing = missing.map(|it| says(format!("`{name}` depends on {it}, which its row omits")));
    let unused = unused.map(|it| says(format!("`{name}` does not depend on {it}")));
    missing.chain(unused).collect()
}

/// Our crates in `[dependencies]` and `[build-dependencies]`, also those for some targets only.
fn our_dependencies(manifest: &str) -> Result<BTreeSet<String>, String> {
    let manifest: toml::Table =
        manifest.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([&manifest]);
    let of_table = |table: &toml::Table| {
        let kinds = ["dependencies", "build-dependencies"];
        let tables = kinds.map(|kind| table.get(kind).and_then(toml::Value::as_table).cloned());
        tables.into_iter().flatten().flatten().map(|(name, _)| name)
    };
    let names = tables.flat_map(of_table);
    Ok(names.filter_map(|name| name.strip_prefix("telusur-").map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: (&str, &str) = ("crates/model/Cargo.toml", "[dependencies]\nurl = \"2\"\n");
    const INDEX: (&str, &str) = (
        "crates/index/Cargo.toml",
        "[dependencies]\ntelusur-model = {}\n[dev-dependencies]\ntelusur-testkit = {}\n",
    );

    #[track_caller]
    fn check_rows(rows: &str, expect: &[&str]) {
        let table = format!("| crate | one line | may depend on |\n|---|---|---|\n{rows}");
        let tree = SourceTree::of(&[MODEL, INDEX, (TABLE, &table)]);
        let found: Vec<String> = check(&tree).iter().map(Violation::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn an_equal_table_passes() {
        check_rows("| `model` | words | – |\n| `index` | search | model |", &[]);
    }

    #[test]
    fn a_dependency_that_the_table_omits_is_found() {
        check_rows(
            "| `model` | words | – |\n| `index` | search | – |",
            &["crates/README.md:4: `index` depends on model, which its row omits"],
        );
    }

    #[test]
    fn a_dependency_that_the_manifest_lacks_is_found() {
        check_rows(
            "| `model` | words | index |\n| `index` | search | model |",
            &["crates/README.md:3: `model` does not depend on index"],
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        check_rows("| `model` | words | – |", &["crates/README.md: no row for `index`"]);
    }

    #[test]
    fn a_row_without_a_crate_is_found() {
        check_rows(
            "| `model` | words | – |\n| `index` | search | model |\n| `fetch` | HTTP | model |",
            &["crates/README.md:5: no crate `fetch`"],
        );
    }

    #[test]
    fn a_dependency_for_one_target_counts() {
        let manifest = "[target.'cfg(unix)'.dependencies]\ntelusur-model = {}\n";
        assert_eq!(our_dependencies(manifest).unwrap(), ["model".to_owned()].into());
    }
}
