//! The language of a piece of code, from the names that highlighters give to its elements.

use html5ever::local_name;

use crate::tree::{NodeId, NodeRef, Tree};

/// The languages that are known. A closed list, since the name of a language on `<code>` makes it
/// different from other `<code>`s, and the tree builder keeps all different ones open.
#[rustfmt::skip]
const LANGUAGES: [&str; 60] = [
    "asm", "bash", "c", "clojure", "cmake", "cpp", "csharp", "css", "dart", "diff", "docker",
    "dockerfile", "elixir", "elm", "erlang", "fsharp", "go", "graphql", "groovy", "haskell", "html",
    "http", "ini", "java", "javascript", "js", "json", "jsx", "julia", "kotlin", "latex", "less",
    "lua", "makefile", "markdown", "matlab", "nginx", "nix", "objectivec", "ocaml", "perl", "php",
    "plaintext", "powershell", "protobuf", "python", "r", "ruby", "rust", "scala", "scss", "sh",
    "shell", "sql", "swift", "toml", "ts", "typescript", "xml", "yaml",
];

/// What highlighters write before the name of a language.
const PREFIXES: [&str; 5] = ["language-", "lang-", "highlight-source-", "highlight-", "brush:"];

/// The language that a `class` names.
pub(crate) fn language_in(class: &str) -> Option<&'static str> {
    class.split_ascii_whitespace().find_map(|word| {
        let named = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix))?;
        LANGUAGES.into_iter().find(|language| named.eq_ignore_ascii_case(language))
    })
}

/// The language of a `<pre>`: named on itself, on the `<code>` in it, or on what is around it.
pub(super) fn of_pre(tree: &Tree, pre: NodeId) -> Option<&'static str> {
    let parent = tree.parent(pre);
    let grandparent = parent.and_then(|parent| tree.parent(parent));
    [Some(pre), tree.first_child(pre), parent, grandparent].into_iter().flatten().find_map(|node| {
        let NodeRef::Element(element) = tree.node(node) else { return None };
        language_in(element.attribute(&local_name!("class"))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages() {
        assert_eq!(language_in("hljs language-rust"), Some("rust"));
        assert_eq!(language_in("lang-JS"), Some("js"));
        assert_eq!(language_in("highlight-source-python"), Some("python"));
        assert_eq!(language_in("language-nonsense"), None);
        assert_eq!(language_in("rust"), None);
    }
}
