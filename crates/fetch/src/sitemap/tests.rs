use std::io::Write;

use super::{Dropped, EntryKind, Format, Sitemap, Trouble, read};

/// Entries as `kind loc`, for comparing.
fn listed(sitemap: &Sitemap) -> Vec<String> {
    let entries = sitemap.entries.iter();
    entries.map(|entry| format!("{} {}", entry.kind.word(), entry.loc)).collect()
}

/// A whole file gives these entries, without trouble.
#[track_caller]
fn check(text: &str, format: Format, expect: &[&str]) {
    let sitemap = read(text.as_bytes());
    assert_eq!(listed(&sitemap), expect);
    assert_eq!(sitemap.format, Some(format));
    assert_eq!(sitemap.trouble, None);
}

/// The one `loc` of a sitemap comes out as this.
#[track_caller]
fn check_loc(loc: &str, expect: &str) {
    check(
        &format!("<urlset><url><loc>{loc}</loc></url></urlset>"),
        Format::UrlSet,
        &[&format!("page {expect}")],
    );
}

#[track_caller]
fn dates(text: &str) -> Vec<Option<String>> {
    let entries = read(text.as_bytes()).entries.into_iter();
    entries.map(|entry| Some(entry.lastmod?.at?.rfc3339())).collect()
}

// Sitemaps.

#[test]
fn a_sitemap_of_pages() {
    let text = "\u{feff}<?xml version='1.0'?>\n<urlset xmlns='x'>\n <url><loc>http://a.org/1</loc>\
                <lastmod>2004-12-23</lastmod></url><url><priority>1</priority>\
                <loc>http://a.org/2</loc></url>\n</urlset>\n";
    check(text, Format::UrlSet, &["page http://a.org/1", "page http://a.org/2"]);
    assert_eq!(dates(text), [Some("2004-12-23T00:00:00Z".to_owned()), None]);
}

#[test]
fn the_date_is_kept_as_written_even_if_it_is_none() {
    let text = "<urlset><url><loc>/</loc><lastmod> soon </lastmod></url></urlset>";
    let lastmod = read(text.as_bytes()).entries[0].lastmod.clone().unwrap();
    assert_eq!((lastmod.raw.as_str(), lastmod.at), ("soon", None));
}

#[test]
fn a_sitemap_of_sitemaps() {
    let text = "<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://a.org/1.xml</s:loc></s:sitemap>\
                <s:sitemap>\n http://a.org/2.xml?a=1&amp;b=2 \n</s:sitemap></s:sitemapindex>";
    let expect = ["sitemap http://a.org/1.xml", "sitemap http://a.org/2.xml?a=1&b=2"];
    check(text, Format::Index, &expect);
}

#[test]
fn locs_are_trimmed_and_unescaped_once() {
    check_loc("\n\t http://a.org/ \r\n", "http://a.org/");
    check_loc("/?a=1&amp;b=2", "/?a=1&b=2");
    check_loc("/?a=1&amp;amp;b=2", "/?a=1&amp;b=2");
    check_loc("/&#x41;&#66;&lt;&quot;", "/AB<\"");
    check_loc("<![CDATA[ /?a=1&b=2 ]]>", "/?a=1&b=2");
    check_loc("/x<![CDATA[?a&amp;b]]>", "/x?a&amp;b");
    check_loc("/a<!-- not here -->b", "/ab");
}

#[test]
fn a_bare_ampersand_is_itself() {
    check_loc("/?a=1&b=2", "/?a=1&b=2");
    check_loc("/?a=1&b=2&", "/?a=1&b=2&");
    check_loc("/?a=1&copy;&b;=2", "/?a=1&copy;&b;=2");
}

#[test]
fn extensions_follow_their_page() {
    let text = "<urlset><url><image:image><image:loc>/i.jpg</image:loc><image:caption>x\
        </image:caption></image:image><loc>/1</loc><xhtml:link rel='alternate' hreflang='de-ch' \
        href='/1?a&amp;de'/><xhtml:link rel='canonical' href='/no'/><video:video>\
        <video:thumbnail_loc>/t.jpg</video:thumbnail_loc><video:content_loc>/v.mp4\
        </video:content_loc><video:player_loc>/p</video:player_loc></video:video></url>\
        <url><loc>/2</loc></url></urlset>";
    let expect = [
        "page /1",
        "image /i.jpg",
        "alternate /1?a&de",
        "image /t.jpg",
        "video /v.mp4",
        "video /p",
        "page /2",
    ];
    check(text, Format::UrlSet, &expect);
    assert_eq!(read(text.as_bytes()).entries[2].kind.hreflang(), Some("de-ch"));
}

#[test]
fn alternates_of_a_sitemap_are_no_pages() {
    let text = "<urlset><sitemap><loc>/s.xml</loc><link rel='alternate' href='/de.xml'/></sitemap>\
                </urlset>";
    check(text, Format::UrlSet, &["sitemap /s.xml"]);
}

#[test]
fn news_have_the_date_of_their_publication() {
    let text = "<urlset><url><loc>/1</loc><news:news><news:publication_date>2008-12-23\
                </news:publication_date></news:news></url></urlset>";
    assert_eq!(dates(text), [Some("2008-12-23T00:00:00Z".to_owned())]);
}

#[test]
fn an_empty_sitemap_is_no_trouble() {
    check("<urlset/>", Format::UrlSet, &[]);
    check("<urlset></urlset>", Format::UrlSet, &[]);
}

// Feeds.

#[test]
fn rss() {
    let text = "<rss version='2.0'><channel><link>/home</link><image><link>/logo</link></image>\
        <item><link>/1</link><atom:link href='/no'/><pubDate>Thu, 05 Jan 2017 13:34:51 GMT</pubDate>\
        <guid>/no</guid></item><item><guid>/2</guid></item>\
        <item><guid isPermaLink='false'>7bd2</guid></item></channel></rss>";
    check(text, Format::Rss, &["page /1", "page /2"]);
    assert_eq!(dates(text), [Some("2017-01-05T13:34:51Z".to_owned()), None]);
    assert_eq!(read(text.as_bytes()).dropped, Dropped { no_address: 1, ..Dropped::default() });
}

#[test]
fn rss_1_0() {
    let text = "<rdf:RDF><channel rdf:about='/rss'><link>/home</link></channel>\
                <item rdf:about='/1'><link>/1</link><dc:date>2004-12-23</dc:date></item>\
                <item rdf:about='/2'></item></rdf:RDF>";
    check(text, Format::Rss, &["page /1", "page /2"]);
    assert_eq!(dates(text)[0].as_deref(), Some("2004-12-23T00:00:00Z"));
}

#[test]
fn atom() {
    let text = "<feed><link href='/home'/><entry><source><link href='/no'/></source>\
        <link rel='edit' href='/no'/><link rel='self' href='/no'/><link href='/1'/>\
        <link rel='alternate' href='/no'/><published>2003-12-13</published>\
        <updated>2003-12-14</updated><content><div><link href='/no'/></div></content></entry>\
        <entry><link rel='self' href='/2'/></entry></feed>";
    check(text, Format::Atom, &["page /1", "page /2"]);
    assert_eq!(dates(text)[0].as_deref(), Some("2003-12-14T00:00:00Z"));
}

#[test]
fn json_feed() {
    let text = r#"{"version":"https://jsonfeed.org/version/1","items":[{"id":1,"url":"http:\/\/a.org\/1",
        "date_published":"2021-10-28","date_modified":"2021-10-29T11:59:00-04:00"},{"url":5},
        {"content_html":"<p>","url":"/2"}],"title":"x"}"#;
    check(text, Format::JsonFeed, &["page http://a.org/1", "page /2"]);
    assert_eq!(dates(text)[0].as_deref(), Some("2021-10-29T15:59:00Z"));
    assert_eq!(read(text.as_bytes()).dropped.no_address, 1);
}

// Lists.

#[test]
fn a_plain_list() {
    let text = "\u{feff}http://a.org/1\r\n\n  https://a.org/2?a=1&b \rfile:///etc/passwd\n# note\n";
    let expect = ["page http://a.org/1", "page https://a.org/2?a=1&b", "page file:///etc/passwd"];
    check(text, Format::TextList, &expect);
    assert_eq!(read(text.as_bytes()).dropped.no_address, 1);
}

// Encodings.

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let sitemap = read(&gzip(b"http://a.org/1\nhttp://a.org/2\n"));
    assert_eq!(listed(&sitemap), ["page http://a.org/1", "page http://a.org/2"]);
    assert_eq!(sitemap.trouble, None);
}

#[test]
fn cut_or_broken_gzip_gives_what_came_before() {
    let noise: String =
        (0..2000).map(|n| format!("http://a.org/{}\n", n * 7919 % 10_007)).collect();
    let whole = gzip(noise.as_bytes());
    let cut = read(&whole[..whole.len() / 2]);
    assert_eq!(cut.trouble, Some(Trouble::Truncated));
    assert!(cut.entries.len() > 100, "{}", cut.entries.len());
    let lines: Vec<_> = noise.lines().take(cut.entries.len()).collect();
    assert!(cut.entries.iter().map(|entry| &entry.loc).eq(lines), "half an address was kept");
    assert_eq!(read(&whole[..4]).trouble, Some(Trouble::Truncated));
    let mut broken = whole.clone();
    broken.extend(b"behind it comes something else");
    let broken = read(&broken);
    assert_eq!(broken.entries.len(), 2000);
    assert_eq!(broken.trouble.unwrap().word(), "decode_error");
}

#[test]
fn utf_16_is_known_by_its_mark() {
    let text = "\u{feff}<urlset><url><loc>/ツ</loc></url></urlset>";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(listed(&read(&little)), ["page /ツ"]);
    assert_eq!(listed(&read(&big)), ["page /ツ"]);
}

#[test]
fn the_declared_encoding_counts_unless_it_is_wrong() {
    let file = |encoding: &str, loc: &[u8]| {
        let head = format!("<?xml version='1.0' encoding=\"{encoding}\"?><urlset><url><loc>");
        [head.as_bytes(), loc, b"</loc></url></urlset>"].concat()
    };
    assert_eq!(listed(&read(&file("iso-8859-1", b"/caf\xe9"))), ["page /café"]);
    assert_eq!(listed(&read(&file("iso-8859-1", "/café".as_bytes()))), ["page /café"]);
    assert_eq!(listed(&read(&file("utf-16", b"/cafe"))), ["page /cafe"]);
    assert_eq!(read(&file("utf-8", b"/caf\xe9")).dropped.bad_text, 1);
}

#[test]
fn one_bad_loc_costs_one_entry() {
    let text =
        b"<urlset><url><loc>/1</loc></url><url><loc>/\xff</loc></url><url><loc>/&#0;</loc></url>\
                 <url><loc>/2</loc></url></urlset>";
    let sitemap = read(text);
    assert_eq!(listed(&sitemap), ["page /1", "page /2"]);
    assert_eq!(sitemap.dropped, Dropped { bad_text: 2, ..Dropped::default() });
}

// Trouble.

#[track_caller]
fn check_trouble(text: &str, word: &str, expect: &[&str]) {
    let sitemap = read(text.as_bytes());
    assert_eq!(sitemap.trouble.as_ref().map(Trouble::word), Some(word), "{text}");
    assert_eq!(listed(&sitemap), expect, "{text}");
}

#[test]
fn a_cut_file_gives_the_entries_before_the_cut() {
    let text = "<urlset><url><loc>/1</loc></url><url><loc>/2</loc></url></urlset>";
    for end in 0..text.len() {
        let cut = &text[..end];
        let sitemap = read(cut.as_bytes());
        let locs_ended = cut.matches("</loc>").count();
        assert_eq!(listed(&sitemap), ["page /1", "page /2"][..locs_ended], "{cut}");
        assert!(sitemap.trouble.is_some(), "{cut}");
    }
    check_trouble(r#"{"items":[{"url":"/1"},{"url":"/2"#, "truncated", &["page /1"]);
    check_trouble(r#"{"items":[{"url":"/1"},}"#, "malformed", &["page /1"]);
}

#[test]
fn a_slip_costs_one_entry() {
    let text = "<urlset><url><loc>/1</loc></ur><url><lok>/x</loc></url><url></br><loc>/2</loc></url>\
                </urlset>";
    check(text, Format::UrlSet, &["page /1", "page /2"]);
}

#[test]
fn an_error_page_is_no_sitemap() {
    for text in [
        "<!DOCTYPE html><html><body><loc>/1</loc></body></html>",
        "<!doctype HTML public \"-//W3C//DTD\"><html></html>",
        "<html><head><title>404</title></head></html>",
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'/>",
        "<svg/>",
        "Not found",
        "{\"error\":404}",
        "{",
        "[1,2]",
        "",
        " \n",
        "<",
        "<!-- -->",
        "\u{0}\u{1}\u{2}",
    ] {
        check_trouble(text, "not_a_sitemap", &[]);
        assert_eq!(read(text.as_bytes()).dropped.total(), 0, "{text}");
    }
}

#[test]
fn kinds_have_words() {
    assert_eq!(EntryKind::Alternate { hreflang: None }.word(), "alternate");
    assert_eq!(EntryKind::Page.hreflang(), None);
}
