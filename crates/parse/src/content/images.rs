//! The images of a page: where they are, what they show, how large they are. Of the sizes that
//! `srcset` offers, the largest is taken.

use std::collections::HashSet;

use html5ever::{LocalName, local_name};
use telusur_model::{Image, PageContent, PageUrl};

use crate::ContentLimits;
use crate::content::{Base, push_bounded};
use crate::text::one_line;
use crate::tokens::lazy_names;
use crate::tree::ElementRef;

pub(super) struct ImageCollector<'t> {
    base: Base<'t>,
    limits: &'t ContentLimits,
    images: Vec<Image>,
    seen: HashSet<PageUrl>,
    dropped: u32,
    /// The largest of the `<source>`s of the open `<picture>`.
    source: Option<&'t str>,
}

impl<'t> ImageCollector<'t> {
    pub(super) fn new(base: Base<'t>, limits: &'t ContentLimits) -> Self {
        let (images, seen) = Default::default();
        Self { base, limits, images, seen, dropped: 0, source: None }
    }

    pub(super) fn take_source(&mut self, element: ElementRef<'t>) {
        if let Some(srcset) = element.attribute(&local_name!("srcset")) {
            self.source = self.source.or_else(|| largest_of(srcset));
        }
    }

    pub(super) fn end_picture(&mut self) {
        self.source = None;
    }

    pub(super) fn take_image(&mut self, element: ElementRef<'t>) {
        let Some(url) = image_address(element, self.source).and_then(|src| self.base.join(src))
        else {
            return;
        };
        if !self.seen.insert(url.clone()) {
            return;
        }
        let alt = element.attribute(&local_name!("alt"));
        let alt = alt.and_then(|alt| one_line([alt].into_iter(), self.limits.alt_bytes_max));
        let image = Image {
            url,
            alt: alt.unwrap_or_default(),
            width: pixels(element.attribute(&local_name!("width"))),
            height: pixels(element.attribute(&local_name!("height"))),
        };
        push_bounded(&mut self.images, image, self.limits.images_max, &mut self.dropped);
    }

    pub(super) fn finish(self, content: &mut PageContent) {
        content.images = self.images;
        content.dropped.images = self.dropped;
    }
}

/// Where an image is, as written. Pages that load images late put their address elsewhere and a
/// placeholder into `src`.
pub(crate) fn image_address<'t>(
    element: ElementRef<'t>,
    source: Option<&'t str>,
) -> Option<&'t str> {
    let late = lazy_names();
    let attribute = |name: &LocalName| element.attribute(name).map(str::trim_ascii);
    let srcset = attribute(&local_name!("srcset")).or_else(|| attribute(&late.data_srcset));
    let plain = attribute(&late.data_src).or_else(|| attribute(&local_name!("src")));
    let is_address = |src: &&str| !src.is_empty() && !src.starts_with("data:");
    srcset.and_then(largest_of).or(source).filter(is_address).or(plain.filter(is_address))
}

/// The candidate of a `srcset` with the largest width or density; the first one of equals.
fn largest_of(srcset: &str) -> Option<&str> {
    let mut largest: Option<(&str, f32)> = None;
    for (url, descriptor) in candidates(srcset) {
        let size = descriptor.trim_end_matches(['w', 'x', 'h']).parse().unwrap_or(1.0);
        if largest.is_none_or(|(_, held)| size > held) {
            largest = Some((url, size));
        }
    }
    largest.map(|(url, _)| url)
}

/// The URLs of a `srcset` with their descriptors. "Parse a srcset attribute" of the HTML standard,
/// §4.8.4.2: a URL ends at white space, since it may hold commas itself.
fn candidates(srcset: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        if url.is_empty() {
            return None;
        }
        if let Some(alone) = url.strip_suffix(',') {
            rest = behind;
            return Some((alone.trim_end_matches(','), ""));
        }
        let end = behind.find(',').unwrap_or(behind.len());
        let descriptor = behind[..end].trim_ascii();
        rest = &behind[end..];
        Some((url, descriptor))
    })
}

fn pixels(value: Option<&str>) -> Option<u32> {
    let value = value?.trim_ascii();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    // `100%` is no number of pixels.
    if value[digits..].starts_with('%') { None } else { value[..digits].parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(srcset: &str, expect: &str) {
        assert_eq!(largest_of(srcset).unwrap_or("none"), expect, "{srcset}");
    }

    #[test]
    fn the_largest_candidate() {
        check("a.jpg 320w, b.jpg 1024w, c.jpg 640w", "b.jpg");
        check("a.jpg, b.jpg 2x", "b.jpg");
        check("a.jpg 1.5x,b.jpg 1x", "a.jpg");
        check("/w_1,h_2/a.jpg 10w,\n /w_3,h_4/b.jpg 20w", "/w_3,h_4/b.jpg");
        check("a.jpg", "a.jpg");
        check(" , ,", "none");
        check("", "none");
    }

    #[test]
    fn sizes_in_pixels() {
        assert_eq!(pixels(Some(" 320 ")), Some(320));
        assert_eq!(pixels(Some("320px")), Some(320));
        assert_eq!(pixels(Some("100%")), None);
        assert_eq!(pixels(Some("auto")), None);
        assert_eq!(pixels(Some("99999999999")), None);
    }
}
