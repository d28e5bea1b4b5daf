//! The small languages inside attributes: the content of `<meta http-equiv=refresh>`, and `rel`.

/// Where `<meta http-equiv=refresh>` leads: the URL in `5; url='next.html'`.
///
/// "Shared declarative refresh steps" of the HTML standard, §4.2.5.3. `None` if the page only
/// reloads itself, or if the content is malformed.
pub(crate) fn refresh_target(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start();
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_time = behind.len() < rest.len();
    let separator = behind.chars().next()?;
    if !has_time || !(matches!(separator, ';' | ',') || separator.is_ascii_whitespace()) {
        return None;
    }
    let rest = behind.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let target = behind_url_equals(rest).unwrap_or(rest);
    let target = match target.chars().next()? {
        quote @ ('"' | '\'') => target[1..].split(quote).next()?,
        _ => target,
    };
    Some(target.trim_ascii()).filter(|target| !target.is_empty())
}

fn behind_url_equals(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(3)?;
    if !word.eq_ignore_ascii_case("url") {
        return None;
    }
    Some(rest.trim_ascii_start().strip_prefix('=')?.trim_ascii_start())
}

/// Whether a `rel` holds one of these words.
pub(crate) fn has_rel(rel: &str, wanted: &[&str]) -> bool {
    rel.split_ascii_whitespace()
        .any(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, expect: &str) {
        assert_eq!(refresh_target(content).unwrap_or("none"), expect, "{content}");
    }

    #[test]
    fn refresh() {
        check("0; url=next.html", "next.html");
        check("5;URL='/a b'", "/a b");
        check(" 0.5 , url = \"x\" junk", "x");
        check("0 next.html", "next.html");
        check("0;next.html", "next.html");
        check("1; url=urls.html", "urls.html");
        check("0;url=", "none");
        check("5", "none");
        check("5;", "none");
        check("url=x", "none");
        check("5url=x", "none");
        check("", "none");
        check("0;é", "é");
    }

    #[test]
    fn rel() {
        assert!(has_rel("noopener  NoFollow", &["nofollow"]));
        assert!(!has_rel("nofollowing", &["nofollow"]));
        assert!(!has_rel("", &["nofollow"]));
    }
}
