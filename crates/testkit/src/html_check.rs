//! Reading made-up HTML back, in tests: which links it has, and whether its tags nest.

/// The values of all `href` and `src` attributes, with the one escape that our pages use undone.
pub(crate) fn hrefs(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in [" href=\"", " src=\""] {
        for after in html.split(attribute).skip(1) {
            let value = after.split('"').next().unwrap_or_default();
            found.push(value.replace("&amp;", "&"));
        }
    }
    found
}

/// Whether every element that needs an end tag has one, in the right order.
pub(crate) fn is_well_formed(html: &str) -> bool {
    let mut open = Vec::new();
    for after in html.split('<').skip(1) {
        let Some((tag, _text)) = after.split_once('>') else { return false };
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if let Some(closed) = name.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return false;
            }
        } else if !VOID.contains(&name) && !name.starts_with('!') && !tag.ends_with('/') {
            open.push(name);
        }
    }
    open.is_empty()
}

/// Elements that have no end tag.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];

#[test]
fn crossed_tags_are_noticed() {
    assert!(is_well_formed("<!doctype html><p>a<br><b>c</b></p>"));
    for html in ["<p>", "</p>", "<p><b></p></b>", "<p"] {
        assert!(!is_well_formed(html), "{html}");
    }
}

#[test]
fn links_are_found() {
    assert_eq!(hrefs(r#"<a href="/x?a=1&amp;b=2">y</a><img src="/i">"#), ["/x?a=1&b=2", "/i"]);
}
