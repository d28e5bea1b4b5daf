//! [`PageWriter`]: the HTML of synthetic pages, put together from blocks that are rendered once.
//! Copying blocks is the whole cost of a page, so that a server of this web outruns any crawler.

use super::shape::PageAt;
use crate::random::Dice;

/// Blocks of text to choose from. With 30 of them on a page no two pages are alike.
const BLOCKS: usize = 256;
/// Phrases that links and titles are made of.
const PHRASES: usize = 256;
/// Links that stand in the navigation; the others stand in lists between the text.
const LINKS_IN_NAVIGATION: usize = 8;
const LINKS_PER_LIST: usize = 10;

/// Writes pages from blocks.
#[derive(Debug)]
pub(super) struct PageWriter {
    blocks: Vec<String>,
    phrases: Vec<String>,
}

/// What one page is made from.
pub(super) struct PageParts<'a> {
    pub(super) at: PageAt,
    pub(super) dice: Dice,
    pub(super) page_bytes: usize,
    /// The addresses linked to, in order.
    pub(super) hrefs: &'a Hrefs,
}

/// Link addresses, in one buffer: fifty small strings per page would cost more than the page.
#[derive(Debug, Default)]
pub(super) struct Hrefs {
    pub(super) text: String,
    pub(super) ends: Vec<usize>,
}

impl Hrefs {
    pub(super) fn end_href(&mut self) {
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

impl PageWriter {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::of(&[seed, BLOCK_TEXT]);
        let phrases = (0..PHRASES).map(|_| words(&mut dice, 2, 4)).collect();
        let blocks = (0..BLOCKS).map(|number| block(&mut dice, number)).collect();
        Self { blocks, phrases }
    }

    /// A whole document of about `page_bytes`; more if its links alone are longer.
    pub(super) fn page(&self, parts: PageParts<'_>) -> String {
        let PageParts { at, mut dice, page_bytes, hrefs } = parts;
        let mut html = String::with_capacity(page_bytes + 4096);
        self.push_head(&mut html, at, &mut dice);

        let links_in_lists = hrefs.ends.len().saturating_sub(LINKS_IN_NAVIGATION);
        let lists = links_in_lists.div_ceil(LINKS_PER_LIST);
        let mut hrefs = hrefs.iter();
        html.push_str("<nav>\n<ul>\n");
        self.push_links(&mut html, hrefs.by_ref().take(LINKS_IN_NAVIGATION), &mut dice);
        html.push_str("</ul>\n</nav>\n</header>\n<main>\n<article>\n");

        for list in 0..lists {
            self.push_blocks(&mut html, page_bytes * (list + 1) / (lists + 1), &mut dice);
            html.push_str("<ul class=\"links\">\n");
            self.push_links(&mut html, hrefs.by_ref().take(LINKS_PER_LIST), &mut dice);
            html.push_str("</ul>\n");
        }
        self.push_blocks(&mut html, page_bytes, &mut dice);
        html.push_str(END);
        html
    }

    fn push_head(&self, html: &mut String, at: PageAt, dice: &mut Dice) {
        let title = self.phrase(dice);
        html.push_str(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>",
        );
        html.push_str(title);
        html.push_str(" - page ");
        push_number(html, at.page);
        html.push_str(" of host ");
        push_number(html, at.host as u64);
        html.push_str("</title>\n<meta name=\"description\" content=\"");
        html.push_str(self.phrase(dice));
        html.push_str(", ");
        html.push_str(self.phrase(dice));
        html.push_str("\">\n<meta name=\"viewport\" content=\"width=device-width\">\n");
        html.push_str("</head>\n<body>\n<header>\n<h1>");
        html.push_str(title);
        html.push_str("</h1>\n");
    }

    fn push_links<'a>(
        &self,
        html: &mut String,
        hrefs: impl Iterator<Item = &'a str>,
        dice: &mut Dice,
    ) {
        for href in hrefs {
            html.push_str("<li><a href=\"");
            html.push_str(href);
            html.push_str("\">");
            html.push_str(self.phrase(dice));
            html.push_str("</a></li>\n");
        }
    }

    fn push_blocks(&self, html: &mut String, until_bytes: usize, dice: &mut Dice) {
        while html.len() + END.len() < until_bytes {
            html.push_str(&self.blocks[dice.index(BLOCKS)]);
        }
    }

    fn phrase(&self, dice: &mut Dice) -> &str {
        &self.phrases[dice.index(PHRASES)]
    }
}

/// Keeps the dice of the blocks apart from the dice of pages.
const BLOCK_TEXT: u64 = 2;

const END: &str = "</article>\n</main>\n<footer>\n<p>A synthetic page. It was never written down.</p>\n\
                   </footer>\n</body>\n</html>\n";

/// Decimal digits without the formatting machinery, which costs more than the rest of a link.
pub(super) fn push_number(text: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).expect("one digit");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.push_str(std::str::from_utf8(&digits[start..]).expect("digits are ASCII"));
}

/// Mostly paragraphs, as on real pages, and now and then a heading, a list or a table.
fn block(dice: &mut Dice, number: usize) -> String {
    match number % 16 {
        0 | 8 => format!("<h2>{}</h2>\n<p>{}</p>\n", words(dice, 2, 5), sentences(dice, 4)),
        4 => {
            let entries = (0..6).map(|_| format!("<li>{}</li>\n", words(dice, 4, 9)));
            format!("<ol>\n{}</ol>\n", entries.collect::<String>())
        }
        12 => {
            let row = |dice: &mut Dice| {
                format!("<tr><td>{}</td><td>{}</td></tr>\n", words(dice, 1, 3), dice.below(10_000))
            };
            let rows: String = (0..6).map(|_| row(dice)).collect();
            format!("<table>\n<tr><th>Name</th><th>Count</th></tr>\n{rows}</table>\n")
        }
        _ => format!("<p>{}</p>\n", sentences(dice, 6)),
    }
}

fn sentences(dice: &mut Dice, count: usize) -> String {
    let sentences: Vec<String> = (0..count).map(|_| format!("{}.", words(dice, 8, 18))).collect();
    sentences.join(" ")
}

/// Words with a capital at the beginning.
fn words(dice: &mut Dice, min: u64, max: u64) -> String {
    let count = min + dice.below(max - min + 1);
    let mut text = String::new();
    for place in 0..count {
        let word = WORDS[dice.index(WORDS.len())];
        let at = text.len();
        if place > 0 {
            text.push(' ');
        }
        text.push_str(word);
        if place == 0 {
            text[at..=at].make_ascii_uppercase();
        }
    }
    text
}

#[rustfmt::skip]
const WORDS: [&str; 192] = [
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was",
    "with", "be", "by", "on", "not", "he", "his", "but", "at", "are", "this", "have",
    "from", "or", "had", "an", "they", "which", "one", "you", "were", "all", "her", "she",
    "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more",
    "river", "harbour", "bridge", "market", "island", "mountain", "forest", "valley", "garden", "village", "road", "station",
    "paper", "letter", "window", "door", "table", "chair", "lamp", "clock", "bottle", "basket", "blanket", "ladder",
    "morning", "evening", "winter", "summer", "autumn", "spring", "yesterday", "tomorrow", "season", "century", "minute", "year",
    "teacher", "farmer", "sailor", "baker", "painter", "doctor", "neighbour", "stranger", "child", "captain", "weaver", "singer",
    "carry", "gather", "measure", "remember", "follow", "answer", "listen", "travel", "repair", "build", "choose", "borrow",
    "quiet", "narrow", "gentle", "ancient", "bright", "heavy", "distant", "familiar", "ordinary", "careful", "sudden", "hollow",
    "coffee", "sugar", "salt", "pepper", "bread", "butter", "rice", "onion", "lemon", "honey", "cheese", "apple",
    "copper", "silver", "iron", "timber", "stone", "cotton", "leather", "glass", "wool", "silk", "clay", "rubber",
    "engine", "signal", "carriage", "platform", "ticket", "journey", "compass", "anchor", "lantern", "voyage", "cargo", "passenger",
    "number", "pattern", "reason", "method", "question", "problem", "example", "history", "language", "science", "figure", "record",
    "between", "across", "behind", "beneath", "beyond", "without", "against", "toward", "along", "around", "under", "within",
    "slowly", "seldom", "often", "always", "never", "almost", "perhaps", "together", "quickly", "finally", "nearly", "again",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_usual() {
        for number in [0, 7, 10, 4_096, u64::MAX] {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }
}
