//! [`Role`]: what an element does to the text in and around it, by its name alone.

use html5ever::{LocalName, local_name};

/// What an element does to the text in and around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing.
    Inline,
    /// Stands on lines of its own.
    Block,
    /// A block in which white space counts.
    Verbatim,
    Article,
    Cell,
    /// `<br>`.
    LineBreak,
    Anchor,
    /// Text below is not visible, but there may be links.
    Hidden,
    /// Nothing below is worth a look.
    Skipped,
}

/// The role of an element by its name. SVG and MathML share the names that matter.
pub(crate) fn role(name: &LocalName) -> Role {
    match *name {
        local_name!("a") => Role::Anchor,
        local_name!("br") => Role::LineBreak,
        local_name!("td") | local_name!("th") => Role::Cell,
        local_name!("article") => Role::Article,
        local_name!("listing")
        | local_name!("plaintext")
        | local_name!("pre")
        | local_name!("textarea")
        | local_name!("xmp") => Role::Verbatim,
        local_name!("head") | local_name!("noscript") => Role::Hidden,
        local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes")
        | local_name!("script")
        | local_name!("style")
        | local_name!("template")
        | local_name!("title") => Role::Skipped,
        local_name!("address")
        | local_name!("aside")
        | local_name!("blockquote")
        | local_name!("body")
        | local_name!("caption")
        | local_name!("center")
        | local_name!("dd")
        | local_name!("details")
        | local_name!("dialog")
        | local_name!("dir")
        | local_name!("div")
        | local_name!("dl")
        | local_name!("dt")
        | local_name!("fieldset")
        | local_name!("figcaption")
        | local_name!("figure")
        | local_name!("footer")
        | local_name!("form")
        | local_name!("h1")
        | local_name!("h2")
        | local_name!("h3")
        | local_name!("h4")
        | local_name!("h5")
        | local_name!("h6")
        | local_name!("header")
        | local_name!("hgroup")
        | local_name!("hr")
        | local_name!("legend")
        | local_name!("li")
        | local_name!("main")
        | local_name!("menu")
        | local_name!("nav")
        | local_name!("ol")
        | local_name!("optgroup")
        | local_name!("option")
        | local_name!("p")
        | local_name!("search")
        | local_name!("section")
        | local_name!("select")
        | local_name!("summary")
        | local_name!("table")
        | local_name!("tbody")
        | local_name!("tfoot")
        | local_name!("thead")
        | local_name!("tr")
        | local_name!("ul") => Role::Block,
        _ => Role::Inline,
    }
}
