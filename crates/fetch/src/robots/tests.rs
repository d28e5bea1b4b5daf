use telusur_model::PageUrl;

use super::{BYTES_MAX, Rules, SITEMAPS_MAX};

fn rules(robots: &str) -> Rules {
    Rules::parse(robots.as_bytes(), "Telusur")
}

#[track_caller]
fn judge(rules: &Rules, path: &str) -> (bool, Option<u32>) {
    let url = PageUrl::parse(&format!("https://a.org{path}")).unwrap();
    let verdict = rules.verdict(&url);
    (verdict.allowed, verdict.rule.map(|rule| rule.line()))
}

#[track_caller]
fn allows(robots: &str, path: &str) {
    assert!(judge(&rules(robots), path).0, "{path} should be allowed by\n{robots}");
}

#[track_caller]
fn forbids(robots: &str, path: &str) {
    assert!(!judge(&rules(robots), path).0, "{path} should be forbidden by\n{robots}");
}

/// Rules for everybody.
fn for_all(rules: &str) -> String {
    format!("User-agent: *\n{rules}\n")
}

#[track_caller]
fn pattern_matches(pattern: &str, path: &str) {
    forbids(&for_all(&format!("Disallow: {pattern}")), path);
}

#[track_caller]
fn pattern_misses(pattern: &str, path: &str) {
    allows(&for_all(&format!("Disallow: {pattern}")), path);
}

// Which rule decides.

#[test]
fn the_verdict_names_its_rule() {
    let rules = rules("# ours\r\nUser-agent: *\r\n\r\nDisallow: /a\r\nAllow: /a/ b$\r\n");
    assert_eq!(judge(&rules, "/a/x"), (false, Some(4)));
    assert_eq!(judge(&rules, "/a/%20b"), (true, Some(5)));
    assert_eq!(judge(&rules, "/"), (true, None));
    let url = PageUrl::parse("https://a.org/a/%20b").unwrap();
    assert_eq!(rules.verdict(&url).rule.unwrap().to_string(), "Allow: /a/%20b$");
}

#[test]
fn the_longest_match_decides_in_any_order() {
    let robots = for_all("Allow: /a/b\nDisallow: /a\nDisallow: /a/b/c");
    forbids(&robots, "/a");
    allows(&robots, "/a/b");
    forbids(&robots, "/a/b/c");
}

#[test]
fn allow_wins_a_tie() {
    allows(&for_all("Disallow: /a\nAllow: /a"), "/a");
    allows(&for_all("Disallow: /*b\nAllow: /ab"), "/ab");
}

#[test]
fn an_empty_rule_says_nothing() {
    allows(&for_all("Disallow:"), "/");
    allows(&for_all("Disallow: # all of it"), "/");
    forbids(&for_all("Disallow: /\nAllow:"), "/");
}

#[test]
fn the_query_is_part_of_the_path() {
    forbids(&for_all("Disallow: /*?"), "/a?b=1");
    allows(&for_all("Disallow: /*?"), "/a");
    forbids(&for_all("Disallow: /a?b=1$"), "/a?b=1#c");
}

#[test]
fn robots_txt_itself_is_always_allowed() {
    allows(&for_all("Disallow: /"), "/robots.txt");
    forbids(&for_all("Disallow: /"), "/robots.txt.bak");
}

// Patterns.

#[test]
fn a_pattern_is_a_prefix() {
    pattern_matches("/fish", "/fish.html");
    pattern_matches("/fish*", "/fish");
    pattern_misses("/fish", "/Fish");
    pattern_misses("/fish", "/catfish");
    pattern_misses("/fish/", "/fish");
    pattern_misses("fish", "/fish");
}

#[test]
fn a_star_stands_for_anything() {
    pattern_matches("/*.php", "/a/b.php?c");
    pattern_matches("*", "/");
    pattern_matches("*b*d", "/abcd");
    pattern_matches("/a**b", "/a-b");
    pattern_misses("/*b*b", "/ab");
    pattern_misses("/a*a", "/a");
}

#[test]
fn a_dollar_sign_at_the_end_is_the_end() {
    pattern_matches("/*.php$", "/a.php");
    pattern_matches("/*a$", "/a/b/a");
    pattern_matches("/$", "/");
    pattern_matches("/*$", "/a");
    pattern_misses("/*.php$", "/a.php5");
    pattern_misses("/ab*b$", "/ab");
    pattern_misses("$", "/");
}

#[test]
fn a_dollar_sign_elsewhere_is_itself() {
    pattern_matches("/a$b", "/a$bc");
    pattern_misses("/a$b", "/a");
}

#[test]
fn special_characters_are_meant_when_encoded() {
    pattern_matches("/a%2A$", "/a*");
    pattern_matches("/a%2a$", "/a%2A");
    pattern_misses("/a%2A", "/ab");
    pattern_matches("/a%24", "/a$");
    pattern_misses("/a%24", "/a");
}

/// RFC 9309, 2.2.2.
#[test]
fn all_spellings_of_an_octet_are_equal() {
    for pattern in ["/bar/ツ$", "/bar/%E3%83%84$", "/bar/%e3%83%84$", "/b%61r/ツ$"] {
        for path in ["/bar/ツ", "/bar/%E3%83%84", "/bar/%e3%83%84", "/%62ar/ツ"] {
            pattern_matches(pattern, path);
        }
    }
    pattern_matches("/a b|c", "/a%20b%7Cc");
    pattern_matches("/?%7b", "/?{x");
}

#[test]
fn an_encoded_delimiter_is_another_octet() {
    pattern_misses("/a%2Fb", "/a/b");
    pattern_misses("/a/b", "/a%2fb");
    pattern_matches("/a%2Fb", "/a%2fb");
}

#[test]
fn a_lone_percent_sign_stays_one() {
    pattern_matches("/*%", "/a%20b");
    pattern_matches("/100%zz", "/100%zz");
    pattern_misses("/*%", "/%61");
}

#[test]
fn latin_1_bytes_are_octets_too() {
    let rules = Rules::parse(b"User-agent: *\nDisallow: /caf\xe9\n", "Telusur");
    assert!(!judge(&rules, "/caf%E9").0);
}

// Groups.

#[test]
fn our_group_replaces_the_one_for_everybody() {
    let robots = "User-agent: *\nDisallow: /a\nUser-agent: telusur\nDisallow: /b\n";
    allows(robots, "/a");
    forbids(robots, "/b");
    allows("User-agent: *\nDisallow: /\nUser-agent: Telusur\n", "/a");
}

#[test]
fn all_our_groups_are_one() {
    let robots = "User-agent: Telusur\nDisallow: /a\nUser-agent: Other\nDisallow: /b\n\
                  User-agent: TELUSUR/2.0\nDisallow: /c\n";
    forbids(robots, "/a");
    allows(robots, "/b");
    forbids(robots, "/c");
}

#[test]
fn a_group_has_several_names() {
    let robots = "User-agent: Other\n\nUser-agent: Telusur\nUser-agent: Third\nDisallow: /a\n";
    forbids(robots, "/a");
    forbids("User-agent: *\nUser-agent: Other\nDisallow: /a\n", "/a");
}

/// RFC 9309, 2.2.4.
#[test]
fn other_lines_end_no_group() {
    let robots = "User-agent: Telusur\nSitemap: /s.xml\nCrawl-delay: 1\nNoise: 1\nnoise\n\
                  User-agent: Other\nDisallow: /a\n\n\nDisallow: /b\n";
    forbids(robots, "/a");
    forbids(robots, "/b");
}

#[test]
fn rules_above_all_groups_count_for_nobody() {
    allows("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/b");
}

#[test]
fn the_closest_name_wins() {
    let robots = "User-agent: Telusur\nDisallow: /family\n\nUser-agent: Telusur-Images\n\
                  Disallow: /images\n\nUser-agent: *\nDisallow: /all\n";
    let forbidden = |token: &str| {
        let rules = Rules::parse(robots.as_bytes(), token);
        let paths = ["/family", "/images", "/all"].into_iter();
        paths.filter(|path| !judge(&rules, path).0).collect::<Vec<_>>()
    };
    assert_eq!(forbidden("Telusur"), ["/family"]);
    assert_eq!(forbidden("Telusur/1.0 (+https://a.org)"), ["/family"]);
    assert_eq!(forbidden("Telusur-Images"), ["/images"]);
    assert_eq!(forbidden("telusur-images2"), ["/images"]);
    assert_eq!(forbidden("Telusur-News"), ["/family"]);
    assert_eq!(forbidden("Telusuri"), ["/all"]);
    assert_eq!(forbidden("Tel"), ["/all"]);
    assert_eq!(forbidden(""), ["/all"]);
}

// Lines.

#[test]
fn any_line_end_and_a_byte_order_mark_are_read() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["\u{feff}User-agent: *", "Disallow: /secret"].join(end);
        let rules = rules(&text);
        assert_eq!(judge(&rules, "/secret"), (false, Some(2)), "{end:?}");
    }
}

#[test]
fn utf_16_is_read() {
    let text = "\u{feff}User-agent: *\r\nDisallow: /secret";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        assert!(!judge(&Rules::parse(&bytes, "Telusur"), "/secret").0);
    }
}

#[test]
fn misspelt_and_untidy_lines_are_read() {
    for line in [
        "disallow:/a",
        "  DISALLOW  :  /a  ",
        "Disallow /a",
        "Disallow\t/a # why",
        "Disalow: /a",
        "Dissallow: /a",
    ] {
        forbids(&for_all(line), "/a");
    }
    forbids("useragent: *\nDisallow: /a\n", "/a");
    forbids("User Agent: *\nDisallow: /a\n", "/a");
    allows(&for_all("Disallow /a is what we want"), "/a");
    allows(&for_all("#Disallow: /a"), "/a");
}

#[test]
fn a_page_that_is_no_robots_txt_forbids_nothing() {
    allows("<!doctype html><title>Not found</title><p>Disallow: /", "/");
    allows("", "/");
    assert!(judge(&Rules::parse(&[0, 159, 146, 150, 10, 255], "Telusur"), "/").0);
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    let last = "Disallow: /last";
    let mut text = for_all("");
    text.push_str(&"#".repeat(BYTES_MAX - text.len() - last.len() - 1));
    text.push('\n');
    text.push_str(last);
    assert_eq!(text.len(), BYTES_MAX);
    forbids(&text, "/last");
    // One byte more, and the line may have been cut.
    text.push('x');
    allows(&text, "/last");
    text.pop();
    text.push_str("\nDisallow: /beyond\n");
    allows(&text, "/beyond");
}

// What else is kept.

#[test]
fn crawl_delay_of_our_group() {
    let delay = |text: &str| rules(&format!("User-agent: *\n{text}\n")).crawl_delay_ms();
    assert_eq!(delay(""), None);
    assert_eq!(delay("Crawl-delay: 2"), Some(2000));
    assert_eq!(delay("crawl-delay: 0.5"), Some(500));
    assert_eq!(delay("Crawl-delay: 10 seconds"), Some(10_000));
    assert_eq!(delay("Crawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2"), Some(3000));
    assert_eq!(delay(&format!("Crawl-delay: {}", "9".repeat(400))), Some(u64::MAX));
    for text in ["-1", "x", "", ".", "1.2.3", "NaN", "inf"] {
        assert_eq!(delay(&format!("Crawl-delay: {text}")), None, "{text}");
    }
    assert_eq!(rules("User-agent: Other\nCrawl-delay: 5\n").crawl_delay_ms(), None);
    let own = rules("User-agent: *\nCrawl-delay: 5\nDisallow:\nUser-agent: Telusur\nAllow: /\n");
    assert_eq!(own.crawl_delay_ms(), None);
}

#[test]
fn sitemaps_belong_to_everybody() {
    let rules =
        rules("Sitemap: /a.xml\nUser-agent: Other\nSITEMAP: http://b.org/#1\nsitemap: /a.xml");
    assert_eq!(rules.sitemaps().collect::<Vec<_>>(), ["/a.xml", "http://b.org/"]);
    assert_eq!(rules.sitemaps_dropped(), 0);
}

#[test]
fn too_many_sitemaps_are_counted() {
    let mut text = format!("Sitemap: /{}\n", "x".repeat(5000));
    for number in 0..10_000 {
        text.push_str(&format!("Sitemap: file:///{number}\n"));
    }
    let rules = rules(&text);
    assert_eq!(rules.sitemaps().count(), SITEMAPS_MAX);
    assert_eq!(rules.sitemaps_dropped(), 10_001 - 100);
}

#[test]
fn content_signals_of_our_group_and_above_all_groups() {
    let robots = "Content-Signal: ai-input=no\nUser-agent: Other\nContent-Signal: search=no\n\
                  Disallow: /\nUser-agent: Telusur\nContent-Signal: search=yes, ai-train=no\n";
    let rules = rules(robots);
    let signals: Vec<_> = rules.content_signals().collect();
    assert_eq!(signals, ["ai-input=no", "search=yes, ai-train=no"]);
    assert_eq!(judge(&rules, "/"), (true, None), "the signal above opened no group");
}

#[test]
fn rules_survive_being_stored() {
    let rules = rules(
        "User-agent: *\nDisallow: /a*b$\nAllow: /ツ\nCrawl-delay: 1\nSitemap: /s\n\
         Content-Signal: search=yes\n",
    );
    assert_eq!(rules.rules_count(), 2);
    let stored = serde_json::to_vec(&rules).unwrap();
    assert_eq!(serde_json::from_slice::<Rules>(&stored).unwrap(), rules);
}
