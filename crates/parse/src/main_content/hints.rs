//! [`Hints`]: what the words in `class`, `id` and `role` say about an element, and what the words
//! of a short text say about it. Authors name things for themselves and mostly tell the truth.
//!
//! The words are those of the trade, in no way those of a single site. A word alone decides
//! nothing: it is a number among others that the model weighs.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::main_content::quick_hash::QuickMap;

/// A set of word groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints(pub u32);

impl Hints {
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, group: usize) -> bool {
        self.0 >> group & 1 == 1
    }
}

/// Words that authors use for parts of a page. The place of a group is its bit.
#[rustfmt::skip]
pub(crate) const MARKUP_GROUPS: [&[&str]; 30] = [
    &["breadcrumb", "breadcrumbs", "crumb", "crumbs"],
    &["nav", "navbar", "navigation", "menu", "menus", "menubar", "megamenu", "submenu", "dropdown", "topbar", "toolbar", "sitemap", "offcanvas", "hamburger", "drawer"],
    &["footer", "foot", "colophon", "copyright", "legal", "contentinfo", "bottom"],
    &["header", "masthead", "banner", "top", "head"],
    &["sidebar", "aside", "side", "rail", "widget", "widgets", "complementary", "secondary"],
    &["ad", "ads", "advert", "adverts", "advertisement", "sponsor", "sponsored", "promo", "promos", "promotion", "promoted", "adsense", "dfp"],
    &["share", "sharing", "social", "socials", "facebook", "twitter", "linkedin", "follow", "like"],
    &["related", "recommend", "recommended", "recommendation", "recommendations", "recirc", "similar", "popular", "trending", "latest", "recent", "upsell", "suggested", "suggestions", "also", "more"],
    &["comment", "comments", "commentlist", "disqus", "respond", "reply", "replies", "discussion", "responses"],
    &["post", "posts", "message", "messages", "thread", "threads", "topic", "topics", "forum"],
    &["meta", "byline", "author", "authors", "date", "time", "timestamp", "published", "dateline", "info", "tag", "tags", "category", "categories"],
    &["newsletter", "subscribe", "subscription", "signup", "signin", "login", "register", "paywall", "account", "optin"],
    &["cookie", "cookies", "consent", "gdpr", "privacy", "modal", "popup", "overlay", "dialog", "lightbox", "notification", "notice", "alert", "toast"],
    &["content", "contents", "main", "body", "page"],
    &["article", "articlebody", "story", "entry", "blog", "news", "prose", "markdown", "richtext", "rte", "wysiwyg", "copy", "paragraph", "text", "single"],
    &["product", "products", "shop", "pdp", "sku"],
    &["price", "prices", "cart", "basket", "checkout", "bag", "buy", "quantity", "qty", "wishlist", "stock", "swatch", "variant", "variants"],
    &["description", "desc", "summary", "excerpt", "intro", "lead", "lede", "abstract", "detail", "details", "spec", "specs", "specification", "specifications", "feature", "features", "overview", "about"],
    &["review", "reviews", "rating", "ratings", "stars", "testimonial", "testimonials", "feedback"],
    &["list", "listing", "listings", "grid", "card", "cards", "tile", "tiles", "collection", "results", "result", "item", "items"],
    &["carousel", "slider", "slide", "slides", "slick", "swiper", "gallery", "slideshow"],
    &["filter", "filters", "facet", "facets", "sort", "search", "refine"],
    &["toc", "outline", "jump", "anchor", "pagination", "pager", "paging", "prev", "previous", "next"],
    &["code", "highlight", "doc", "docs", "docutils", "documentation", "rst", "admonition", "api", "example"],
    &["title", "headline", "heading", "subtitle", "subheading", "name"],
    &["caption", "figcaption", "figure", "image", "img", "photo", "media", "credit", "video", "thumbnail", "thumb", "player"],
    &["cta", "button", "buttons", "btn", "action", "actions", "link", "links", "tools", "controls", "edit"],
    &["faq", "faqs", "accordion", "question", "questions", "answer", "answers", "qa", "collapse", "panel", "tab", "tabs"],
    &["hidden", "hide", "sr", "screenreader", "visuallyhidden", "invisible", "skip", "offscreen", "print", "noprint"],
    &["user", "username", "avatar", "profile", "member", "badge", "signature", "bio", "likes", "vote", "votes", "score"],
];

/// Words that short texts around the content are made of.
#[rustfmt::skip]
pub(crate) const TEXT_GROUPS: [&[&str]; 9] = [
    &["copyright", "rights", "reserved", "privacy", "terms", "cookie", "cookies", "policy", "inc", "ltd", "llc"],
    &["share", "facebook", "twitter", "pinterest", "tweet", "email", "whatsapp", "linkedin", "instagram", "print", "bagikan"],
    &["read", "more", "continue", "view", "all", "see", "show", "load", "learn", "explore", "selengkapnya"],
    &["comment", "comments", "reply", "replies", "quote", "report", "like", "likes", "upvote", "komentar", "balas"],
    &["log", "login", "sign", "register", "subscribe", "newsletter", "account", "password", "join", "inbox", "masuk", "daftar"],
    &["cart", "bag", "checkout", "wishlist", "buy", "shipping", "stock", "qty", "quantity", "price", "sale", "sold", "compare", "delivery", "beli", "keranjang"],
    &["ago", "am", "pm", "published", "updated", "posted", "by", "min", "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    &["related", "recommended", "popular", "trending", "similar", "also", "latest", "next", "previous", "advertisement", "sponsored", "recent", "terkait", "terpopuler"],
    &["home", "menu", "search", "skip", "navigation", "contact", "about", "help", "support", "faq", "careers", "sitemap", "close", "back", "beranda"],
];

/// Longest word in the groups, and longer than all of them.
const WORD_BYTES_MAX: usize = 16;

/// Looks words up. Names repeat all over a page, so that each is taken apart only once.
#[derive(Default)]
pub(crate) struct HintReader<'t> {
    by_name: HashMap<&'t str, Name>,
}

/// A `class`, `id` or `role`, read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name {
    pub hints: Hints,
    /// The same for names that differ in numbers only, such as `post-17` and `post-18`.
    pub hash: u64,
}

static MARKUP_WORDS: LazyLock<QuickMap<&str, u32>> = LazyLock::new(|| index(&MARKUP_GROUPS));
static TEXT_WORDS: LazyLock<QuickMap<&str, u32>> = LazyLock::new(|| index(&TEXT_GROUPS));

impl<'t> HintReader<'t> {
    /// Reads the value of a `class`, `id` or `role`.
    pub(crate) fn of_name(&mut self, name: &'t str) -> Name {
        *self.by_name.entry(name).or_insert_with(|| Name {
            hints: words_in(name, &MARKUP_WORDS),
            hash: hash_without_digits(name),
        })
    }
}

/// The hints in a short text.
pub(crate) fn hints_of_text(text: &str) -> Hints {
    words_in(text, &TEXT_WORDS)
}

fn index(groups: &'static [&'static [&'static str]]) -> QuickMap<&'static str, u32> {
    let mut words = QuickMap::default();
    for (bit, group) in groups.iter().enumerate() {
        for word in *group {
            *words.entry(*word).or_default() |= 1 << bit;
        }
    }
    words
}

/// Takes `postBody-header2` apart into `post`, `body` and `header`.
fn words_in(name: &str, words: &QuickMap<&'static str, u32>) -> Hints {
    let mut hints = 0;
    let mut word = [0u8; WORD_BYTES_MAX];
    let mut length = 0;
    let mut look_up = |word: &[u8]| {
        let known = std::str::from_utf8(word).ok().and_then(|word| words.get(word));
        hints |= known.copied().unwrap_or_default();
    };
    let mut after_lower_case = false;
    for byte in name.bytes() {
        let begins_word = byte.is_ascii_uppercase() && after_lower_case;
        if !byte.is_ascii_alphabetic() || begins_word {
            if (2..=WORD_BYTES_MAX).contains(&length) {
                look_up(&word[..length]);
            }
            length = 0;
        }
        if byte.is_ascii_alphabetic() {
            if let Some(place) = word.get_mut(length) {
                *place = byte.to_ascii_lowercase();
            }
            length += 1;
        }
        after_lower_case = byte.is_ascii_lowercase();
    }
    if (2..=WORD_BYTES_MAX).contains(&length) {
        look_up(&word[..length]);
    }
    Hints(hints)
}

fn hash_without_digits(name: &str) -> u64 {
    let letters = name.bytes().filter(|byte| !byte.is_ascii_digit());
    letters.fold(0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
