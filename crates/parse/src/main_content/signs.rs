//! [`PageSigns`]: what a page says about itself outside of its text.

use telusur_model::PageUrl;

use crate::main_content::hints::{HintReader, Hints};
use crate::main_content::told::Told;

/// What a page says about itself.
pub(crate) struct PageSigns<'t> {
    pub title: Option<&'t str>,
    /// A bit for each of [`SCHEMA_TYPES`] that the page declares to be or to hold.
    pub schema_kinds: u32,
    pub path_hints: Hints,
    pub path_depth: u32,
    /// Words in the last part of the path: articles have long names.
    pub path_words: u32,
    /// Whether a year stands in the path.
    pub path_has_date: bool,
    pub told: Told,
}

/// The types of schema.org and of Open Graph that tell kinds of pages apart.
#[rustfmt::skip]
const SCHEMA_TYPES: [&[&str]; PageSigns::SCHEMA_KINDS] = [
    &["Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "ScholarlyArticle", "article", "ReportageNewsArticle", "Blog"],
    &["Product", "ProductGroup", "product", "product.item", "og:product", "Offer", "AggregateOffer"],
    &["DiscussionForumPosting", "QAPage", "Question", "Answer", "Comment"],
    &["ItemList", "CollectionPage", "SearchResultsPage", "OfferCatalog", "ListItem", "product.group"],
    &["Service", "LocalBusiness", "ProfessionalService", "Course", "Event"],
    &["FAQPage", "HowTo", "Recipe"],
    &["WebSite", "Organization", "website"],
    &["WebPage", "AboutPage", "ContactPage", "ProfilePage"],
];

impl<'t> PageSigns<'t> {
    /// How many kinds are told apart.
    pub(crate) const SCHEMA_KINDS: usize = 8;

    pub(crate) fn new(url: &PageUrl, title: Option<&'t str>) -> Self {
        let path = url.path();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let is_year = |part: &str| part.len() == 4 && part.starts_with("20");
        Self {
            title,
            schema_kinds: 0,
            path_hints: HintReader::default().of_name(path).hints,
            path_depth: parts.clone().count() as u32,
            path_words: parts.clone().next_back().map_or(0, |name| {
                name.split(['-', '_']).filter(|word| !word.is_empty()).count() as u32
            }),
            path_has_date: parts.any(is_year),
            told: Told::default(),
        }
    }

    /// Takes the name of a type that the page declares, as in `https://schema.org/Product`.
    pub(crate) fn declare(&mut self, schema_type: &str) {
        let name = schema_type.rsplit('/').next().unwrap_or_default();
        for (bit, types) in SCHEMA_TYPES.iter().enumerate() {
            self.schema_kinds |= u32::from(types.contains(&name)) << bit;
        }
    }

    /// Takes every `"@type"` in a piece of JSON-LD. Not a parser: what is malformed still tells.
    pub(crate) fn declare_json_ld(&mut self, json: &str) {
        let mut rest = json;
        while let Some(at) = memchr::memmem::find(rest.as_bytes(), b"\"@type\"") {
            rest = &rest[at + b"\"@type\"".len()..];
            let value = rest.trim_ascii_start().strip_prefix(':').unwrap_or_default();
            // The type is a string, or a list of them: all of it lies before the next comma or
            // bracket in the one case, and before the closing bracket in the other.
            let value = value.trim_ascii_start();
            let end = if value.starts_with('[') { value.find(']') } else { value.find([',', '}']) };
            for name in value[..end.unwrap_or_default()].split('"') {
                self.declare(name);
            }
        }
    }
}
