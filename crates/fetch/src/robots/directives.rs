//! What a page asks of search engines: its `X-Robots-Tag` headers and its robots metas, in one
//! reading. Unlike robots.txt they speak about a page that was already fetched.

use telusur_model::{Directives, RawPage};

/// Directives that have a value behind a colon, so that the colon does not name an agent.
const VALUED: &[&str] =
    &["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// What a page asks of the crawler with this product token. `metas`: the agent that a robots meta
/// is for (`robots` is everybody) and its content.
pub fn directives<'a>(
    page: &RawPage,
    metas: impl Iterator<Item = (&'a str, &'a str)>,
    product_token: &str,
) -> Directives {
    let mut asked = Directives::default();
    let is_ours = |agent: &str| agent.eq_ignore_ascii_case(product_token);
    let headers = page.headers.iter().filter(|(name, _)| name == "x-robots-tag");
    for (_, value) in headers {
        let (agent, words) = split_agent(value);
        if agent.is_none_or(is_ours) {
            note(&mut asked, "X-Robots-Tag", words);
        }
    }
    for (agent, content) in metas {
        if agent.eq_ignore_ascii_case("robots") || is_ours(agent) {
            note(&mut asked, "meta robots", content);
        }
    }
    asked
}

/// `telusur: noindex, nofollow` speaks to one crawler, `noindex, nofollow` to all.
fn split_agent(value: &str) -> (Option<&str>, &str) {
    match value.split_once(':') {
        Some((agent, words)) if !agent.contains(',') && !is_valued(agent) => {
            (Some(agent.trim()), words)
        }
        _ => (None, value),
    }
}

fn is_valued(word: &str) -> bool {
    VALUED.iter().any(|valued| word.trim().eq_ignore_ascii_case(valued))
}

fn note(asked: &mut Directives, place: &str, words: &str) {
    let mut said = Vec::new();
    for word in words.split(',').map(str::trim) {
        let (noindex, nofollow) = match word.to_ascii_lowercase().as_str() {
            "noindex" => (true, false),
            "nofollow" => (false, true),
            "none" => (true, true),
            _ => continue,
        };
        asked.noindex |= noindex;
        asked.nofollow |= nofollow;
        said.push(word);
    }
    if !said.is_empty() {
        if !asked.said.is_empty() {
            asked.said.push_str("; ");
        }
        asked.said.push_str(&format!("{place}: {}", said.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use telusur_model::PageUrl;

    use super::*;

    #[track_caller]
    fn check(tags: &[&str], metas: &[(&str, &str)], noindex: bool, nofollow: bool) {
        let page = RawPage {
            url: PageUrl::parse("http://a.org/").unwrap(),
            status: 200,
            headers: tags.iter().map(|tag| ("x-robots-tag".into(), (*tag).into())).collect(),
            body: Default::default(),
            truncated: false,
            wire_bytes: 0,
        };
        let asked = directives(&page, metas.iter().copied(), "Telusur");
        assert_eq!((asked.noindex, asked.nofollow), (noindex, nofollow), "{tags:?} {metas:?}");
        assert_eq!(asked.said.is_empty(), !(noindex || nofollow));
    }

    #[test]
    fn headers_and_metas_add_up() {
        check(&[], &[], false, false);
        check(&["noindex"], &[("robots", "nofollow")], true, true);
        check(&["NoIndex , NOARCHIVE"], &[], true, false);
        check(&[], &[("ROBOTS", "None")], true, true);
        check(&["all", "index, follow"], &[], false, false);
    }

    #[test]
    fn other_crawlers_are_not_meant() {
        check(&["googlebot: noindex"], &[("googlebot", "none")], false, false);
        check(&["telusur: noindex, nofollow"], &[], true, true);
        check(&["otherbot: noindex", "noindex"], &[("Telusur", "nofollow")], true, true);
    }

    #[test]
    fn values_are_no_agents() {
        check(&["unavailable_after: 25 Jun 2010 15:00:00 PST"], &[], false, false);
        check(&["noindex, max-snippet: 20"], &[], true, false);
        check(&["max-snippet: 20, noindex"], &[], true, false);
    }
}
