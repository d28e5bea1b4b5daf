//! Lists of modules are in reading order, as far as that can be checked:
//!
//! 1. Every file begins with a `//!` line.
//! 2. The `mod` declarations of a file are one list at its top: nothing is before it but the `//!` lines and
//!    attributes, and nothing in it but blank lines. Modules of tests come last, in the list or in the file.
//! 3. Modules that the `//!` lines name are declared in the order in which they are named there.
//! 4. A list of [`LONG_LIST`] modules or more is not alphabetical. A formatter sorts what has no blank line in it,
//!    so a long list is cut into groups.
//!
//! Whether a reader wants that order is not checked.

use super::Violation;
use super::rust_text::{Module, RustText};
use super::source_tree::SourceTree;

/// From here on an alphabetical list is an index, not an order to read in.
const LONG_LIST: usize = 8;

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    tree.program_files().flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, rust: &RustText) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !rust.lines.first().is_some_and(|line| line.text.starts_with("//!")) {
        violations.push(Violation::new(path, 1, "begins without a `//!` line"));
    }
    let modules: Vec<&Module> = rust.modules.iter().filter(|module| !module.is_test).collect();
    let (Some(head), Some(last)) = (modules.first(), modules.last()) else { return violations };
    violations.extend(scattered(path, rust, last));
    violations.extend(out_of_order(path, rust, &modules));
    if modules.len() >= LONG_LIST && modules.is_sorted_by_key(|module| &module.name) {
        let what = format!(
            "{} modules by alphabet: declare them in reading order, in groups with blank lines between them",
            modules.len()
        );
        violations.push(Violation::new(path, head.line, what));
    }
    violations
}

/// Items other than modules before the last declaration.
fn scattered(path: &str, rust: &RustText, last: &Module) -> Vec<Violation> {
    let before = rust.program_lines().take_while(|(number, _)| *number < last.line);
    let other = before.filter(|(_, line)| {
        let code = line.code.trim();
        let is_module = code.contains("mod ") && code.ends_with(';');
        !code.is_empty() && !code.starts_with('#') && !is_module
    });
    let first = other.map(|(number, _)| number).next();
    first
        .map(|number| {
            let what =
                format!("stands before `mod {};`: the list of modules comes first", last.name);
            Violation::new(path, number, what)
        })
        .into_iter()
        .collect()
}

/// Modules that are declared after one that the text names later.
fn out_of_order(path: &str, rust: &RustText, modules: &[&Module]) -> Vec<Violation> {
    let doc: Vec<&str> =
        rust.lines.iter().map_while(|line| line.text.strip_prefix("//!")).collect();
    let doc = doc.join("\n");
    let place = |module: &Module| {
        let (plain, linked) = (format!("`{}`", module.name), format!("[`{}`]", module.name));
        doc.find(&plain).or_else(|| doc.find(&linked))
    };
    let named: Vec<(&&Module, usize)> =
        modules.iter().filter_map(|module| Some((module, place(module)?))).collect();
    let wrong = named.windows(2).filter(|pair| pair[0].1 > pair[1].1);
    wrong
        .map(|pair| {
            let (before, after) = (&pair[0].0.name, &pair[1].0.name);
            let what = format!("`{after}` is named before `{before}` above and declared behind it");
            Violation::new(path, pair[1].0.line, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_lib(text: &str, expect: &[(usize, &str)]) {
        let found = check(&SourceTree::of(&[("crates/model/src/lib.rs", text)]));
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (violation, (line, what)) in found.iter().zip(expect) {
            assert!(violation.line == *line && violation.what.starts_with(what), "{violation}");
        }
    }

    #[test]
    fn a_list_at_the_top_passes() {
        check_lib(
            "//! What.\n\nmod b;\nmod c;\n\npub mod a;\n\nuse a::A;\n#[cfg(test)]\nmod tests;\n",
            &[],
        );
        check_lib("//! What.\n", &[]);
    }

    #[test]
    fn a_file_that_says_nothing_is_found() {
        check_lib("fn a() {}\n", &[(1, "begins without")]);
    }

    #[test]
    fn a_module_below_an_item_is_found() {
        check_lib("//! What.\nmod b;\nuse b::B;\nmod c;\n", &[(3, "stands before `mod c;`")]);
        check_lib("//! What.\nfn a() {}\nmod c;\n", &[(2, "stands before `mod c;`")]);
    }

    #[test]
    fn an_order_that_the_text_contradicts_is_found() {
        let doc = "//! First `fetch`, then [`parse`].\n";
        check_lib(&format!("{doc}mod fetch;\nmod parse;\n"), &[]);
        check_lib(&format!("{doc}mod parse;\n\nmod fetch;\n"), &[(4, "`fetch` is named before")]);
    }

    #[test]
    fn a_long_list_by_alphabet_is_found() {
        let list = |names: [&str; 8]| {
            let mods = names.map(|name| format!("mod {name};\n"));
            format!("//! What.\n{}", mods.concat())
        };
        check_lib(&list(["a", "b", "c", "d", "e", "f", "g", "h"]), &[(2, "8 modules by alphabet")]);
        check_lib(&list(["b", "a", "c", "d", "e", "f", "g", "h"]), &[]);
        check_lib("//! What.\nmod a;\nmod b;\nmod c;\nmod d;\nmod e;\n", &[]);
    }
}
