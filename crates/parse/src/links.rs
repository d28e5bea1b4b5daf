//! [`LinkCollector`]: the links of a page, each URL once. Resolving is what costs, so that links
//! written the same way are put together before, and nothing beyond the limit is resolved.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use telusur_model::{Link, LinkKind, PageUrl, UrlError};

use crate::charset::QueryCharset;
use crate::meta::has_rel;
use crate::text::cut;

/// The number of a link in its collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(usize);

/// Gathers links as they are written.
#[derive(Default)]
pub(crate) struct LinkCollector<'t> {
    written: Vec<WrittenLink<'t>>,
    by_href: HashMap<&'t str, LinkId>,
}

struct WrittenLink<'t> {
    href: &'t str,
    anchor: String,
    kind: LinkKind,
    rel: &'t str,
    nofollow: bool,
}

/// Bytes of `rel` that are kept: all words of the standard together have about as many.
const REL_BYTES_MAX: usize = 64;

/// The links of a page, resolved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedLinks {
    pub links: Vec<Link>,
    pub dropped: u32,
    pub other_scheme: u32,
    pub bad: u32,
}

impl<'t> LinkCollector<'t> {
    /// Takes a link. Of links to the same URL the first one counts; only `nofollow` must be on all
    /// of them, since one plain link is enough to be invited.
    pub(crate) fn add(&mut self, href: &'t str, kind: LinkKind, rel: Option<&'t str>) -> LinkId {
        let rel = rel.unwrap_or_default();
        let nofollow = has_rel(rel, &["nofollow"]);
        let href = without_fragment(href).trim_ascii();
        match self.by_href.entry(href) {
            Entry::Occupied(known) => {
                let id = *known.get();
                self.written[id.0].nofollow &= nofollow;
                id
            }
            Entry::Vacant(new) => {
                let id = *new.insert(LinkId(self.written.len()));
                self.written.push(WrittenLink { href, anchor: String::new(), kind, rel, nofollow });
                id
            }
        }
    }

    /// Gives a link its text; the longest one is kept.
    pub(crate) fn set_anchor(&mut self, id: LinkId, anchor: &str) {
        let held = &mut self.written[id.0].anchor;
        if anchor.len() > held.len() {
            anchor.clone_into(held);
        }
    }

    /// Resolves all links against the page, or against its `<base>`.
    pub(crate) fn resolve(
        self,
        page: &PageUrl,
        base: Option<&PageUrl>,
        charset: QueryCharset,
        links_max: usize,
    ) -> ResolvedLinks {
        let kept_max = self.written.len().min(links_max);
        let mut by_url: HashMap<String, usize> = HashMap::with_capacity(kept_max);
        let mut resolved =
            ResolvedLinks { links: Vec::with_capacity(kept_max), ..ResolvedLinks::default() };
        for written in self.written {
            if written.href.is_empty() && base.is_none() {
                // `#top` leads nowhere else.
                continue;
            }
            if resolved.links.len() >= links_max {
                resolved.dropped += 1;
                continue;
            }
            match charset.join(base.unwrap_or(page), written.href) {
                Ok(url) => merge(url, written, &mut by_url, &mut resolved.links),
                Err(UrlError::Scheme(_)) => resolved.other_scheme += 1,
                Err(UrlError::Bad(_) | UrlError::TooLong(_)) => resolved.bad += 1,
            }
        }
        resolved
    }
}

fn merge(
    url: PageUrl,
    written: WrittenLink<'_>,
    by_url: &mut HashMap<String, usize>,
    links: &mut Vec<Link>,
) {
    match by_url.get(url.as_str()) {
        Some(known) => {
            let link = &mut links[*known];
            link.nofollow &= written.nofollow;
            if written.anchor.len() > link.anchor.len() {
                link.anchor = written.anchor;
            }
        }
        None => {
            by_url.insert(url.as_str().to_owned(), links.len());
            let WrittenLink { anchor, kind, nofollow, rel, .. } = written;
            let rel = cut(rel.trim_ascii(), REL_BYTES_MAX).to_owned();
            links.push(Link { url, anchor, kind, nofollow, rel });
        }
    }
}

/// A URL's fragment begins at the first `#`.
fn without_fragment(href: &str) -> &str {
    match memchr::memchr(b'#', href.as_bytes()) {
        Some(hash) => &href[..hash],
        None => href,
    }
}
