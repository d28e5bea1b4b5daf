//! The corners of the demo site in which crawlers get into trouble: redirects, faults, copies, a
//! calendar without end.

use super::layout::{PageContent, link, link_list, paragraph, table};

/// Each of these redirects to the next one, and the last to a page.
pub(super) const REDIRECT_CHAIN: [&str; 4] = ["/moved/1", "/moved/2", "/moved/3", "/en/rivers"];

/// These two redirect to each other.
pub(super) const REDIRECT_LOOP: [&str; 2] = ["/loop/a", "/loop/b"];

/// Three addresses of one page, byte for byte.
pub(super) const COPIES: [&str; 3] = ["/copy/first", "/copy/second", "/copy/third"];

/// Linked, and not there.
pub(super) const MISSING: [&str; 2] = ["/missing/page", "/missing/picture.png"];

/// Forbidden by robots.txt.
pub(super) const FORBIDDEN: [&str; 2] = ["/private/", "/private/notes"];

/// Where the calendar is linked.
pub(super) const CALENDAR: &str = "/calendar?month=2026-11";

/// The page that leads to all the corners.
pub(super) fn oddities_page() -> PageContent {
    let sections = [
        ("Addresses that moved", vec![REDIRECT_CHAIN[0], REDIRECT_LOOP[0]]),
        ("Things that go wrong", [&MISSING[..], &["/broken", "/slow"]].concat()),
        ("The same page again", COPIES.to_vec()),
        (
            "One page, many campaigns",
            vec![
                "/newsletter",
                "/newsletter?utm_source=mail&utm_campaign=november",
                "/newsletter?fbclid=Iw4R2x",
            ],
        ),
        ("A calendar without end", vec![CALENDAR]),
        ("Not for crawlers", FORBIDDEN.to_vec()),
        (
            "Other shapes",
            vec![
                "/tables",
                "/lists",
                "/legacy",
                "/plain.txt",
                "/files/guide.pdf",
                "/files/rivers.csv",
            ],
        ),
    ];
    let main = sections.into_iter().map(|(title, paths)| {
        format!("<h2>{title}</h2>\n") + &link_list(paths.into_iter().map(|path| (path, path)))
    });
    PageContent::english("Oddities", main.collect::<String>())
}

pub(super) fn copy_page() -> PageContent {
    let text = "This page can be had under three addresses. Whoever searches for the grey heron \
                should find it once.";
    PageContent::english("The grey heron", paragraph(text))
}

pub(super) fn slow_page() -> PageContent {
    let text = "The answer took three tenths of a second, as if somebody had gone to the archive \
                to look for the tortoise.";
    PageContent::english("The slow page", paragraph(text))
}

/// The same for every visitor: what stands behind the question mark only says where they came from.
pub(super) fn newsletter_page(origin: &str) -> PageContent {
    let text = "News about lighthouses, once a month. The link in the mail carries tracking \
                parameters, the page does not care.";
    let mut page = PageContent::english("Newsletter", paragraph(text));
    page.head = format!("<link rel=\"canonical\" href=\"{origin}/newsletter\">\n");
    page
}

pub(super) fn private_page() -> PageContent {
    let text = "If a crawler shows you the word quokka, it did not read robots.txt.";
    PageContent::english("Private notes", paragraph(text))
}

pub(super) fn tables_page() -> PageContent {
    let plain = table(
        "Departures",
        &[
            vec!["Train", "To", "Time"],
            vec!["Argo Bromo", "Surabaya", "20:15"],
            vec!["Taksaka", "Yogyakarta", "21:00"],
            vec!["Gajayana", "Malang", "18:40"],
        ],
    );
    let spanning = "<table>\n<caption>Opening hours</caption>\n<thead>\n\
        <tr><th scope=\"col\">Day</th><th scope=\"col\">From</th><th scope=\"col\">To</th></tr>\n\
        </thead>\n<tbody>\n<tr><td>Monday</td><td rowspan=\"2\">8:00</td><td>16:00</td></tr>\n\
        <tr><td>Tuesday</td><td>17:30</td></tr>\n<tr><td>Sunday</td><td colspan=\"2\">closed</td></tr>\n\
        </tbody>\n</table>\n";
    PageContent::english("Tables", plain + spanning)
}

pub(super) fn lists_page() -> PageContent {
    let main = "<h2>Nested</h2>\n<ul>\n<li>Spices\n<ul>\n<li>Nutmeg</li>\n<li>Mace</li>\n</ul>\n</li>\n\
        <li>Woods\n<ol>\n<li>Sandalwood</li>\n<li>Ironwood</li>\n</ol>\n</li>\n</ul>\n\
        <h2>Explained</h2>\n<dl>\n<dt>Frontier</dt>\n<dd>What is still to be fetched.</dd>\n\
        <dt>Snippet</dt>\n<dd>The lines below a search result.</dd>\n</dl>\n";
    PageContent::english("Lists", main)
}

/// A page in the encoding of another time. Its é is one byte.
pub(super) fn legacy_page() -> Vec<u8> {
    let html = "<html><head><meta http-equiv=\"content-type\" \
        content=\"text/html; charset=windows-1252\"><title>Café</title></head>\n\
        <body><p>The café was rebuilt in 1997, and so was this page.</p></body></html>\n";
    html.chars().map(|letter| u8::try_from(letter).expect("Latin letters only")).collect()
}

/// One month, with links to the months before and after it. There is always another one.
pub(super) fn calendar_page(query: &str) -> Option<PageContent> {
    const DAYS_PER_ROW: usize = 7;
    let (year, month) = query.strip_prefix("month=")?.split_once('-')?;
    let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
    let months =
        (1..=12).contains(&month).then(|| year.checked_mul(12))??.checked_add(month - 1)?;
    let link_to = |months: u32, text: &str| {
        let path = format!("/calendar?month={:04}-{:02}", months / 12, months % 12 + 1);
        format!("<p>{}</p>\n", link(&path, text))
    };
    let days: Vec<String> = (1..=days_of(year, month)).map(|day| day.to_string()).collect();
    let mut rows = vec![["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"].map(str::to_owned).to_vec()];
    rows.extend(days.chunks(DAYS_PER_ROW).map(<[String]>::to_vec));
    let title = format!("Calendar for {year:04}-{month:02}");
    let main = table(&title, &rows)
        + &link_to(months.saturating_sub(1), "Month before")
        + &link_to(months.saturating_add(1), "Month after");
    Some(PageContent::english(title, main))
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
