use proptest::prelude::*;

use super::*;

/// 2026-11-15T17:59:26Z.
const NOW: Timestamp = Timestamp(1_794_765_566_000);

fn url(text: &str) -> PageUrl {
    PageUrl::parse(text).unwrap()
}

fn answer(set_cookies: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for set_cookie in set_cookies {
        headers.append(SET_COOKIE, HeaderValue::from_bytes(set_cookie.as_bytes()).unwrap());
    }
    headers
}

fn jar(from: &str, set_cookies: &[&str]) -> CookieJar {
    let mut jar = CookieJar::default();
    jar.learn(&url(from), &answer(set_cookies), NOW);
    jar
}

fn sent(jar: &mut CookieJar, to: &str) -> String {
    let header = jar.header_for(&url(to), NOW);
    header.map_or(String::new(), |header| header.to_str().unwrap().to_owned())
}

#[track_caller]
fn check(from: &str, set_cookie: &str, to: &str, expect: &str) {
    assert_eq!(sent(&mut jar(from, &[set_cookie]), to), expect, "{set_cookie} from {from} to {to}");
}

#[test]
fn a_cookie_goes_back_to_its_host() {
    check("http://a.org/", "a=1", "http://a.org/x", "a=1");
    check("http://a.org/", " a = b c ; HttpOnly; SameSite=Strict", "http://a.org/", "a=b c");
    check("http://a.org/", "a=1", "http://b.org/", "");
    check("http://a.org/", "a=1", "http://www.a.org/", "");
    check("http://www.a.org/", "a=1", "http://a.org/", "");
    check("http://127.0.0.1/", "a=1", "http://127.0.0.1/", "a=1");
}

#[test]
fn neither_another_port_nor_another_scheme_gets_it() {
    // R5, G8.
    check("http://a.org/", "a=1", "http://a.org:8080/", "");
    check("http://a.org:8080/", "a=1", "http://a.org/", "");
    check("https://a.org/", "a=1", "http://a.org/", "");
    check("https://a.org/", "a=1; Domain=a.org", "http://www.a.org/", "");
    check("http://a.org/", "a=1", "https://a.org/", "");
    check("https://a.org/", "a=1; Secure", "https://a.org/", "a=1");
    check("http://a.org/", "a=1; Secure", "https://a.org/", "");
}

#[test]
fn a_domain_shares_with_those_below_it() {
    check("http://a.org/", "a=1; Domain=a.org", "http://www.a.org/", "a=1");
    check("http://www.a.org/", "a=1; Domain=.A.org", "http://x.y.a.org:81/", "a=1");
    check("http://www.a.org/", "a=1; Domain=x.a.org", "http://x.a.org/", "");
    check("http://www.a.org/", "a=1; Domain=www.a.org", "http://a.org/", "");
    check("http://xa.org/", "a=1; Domain=a.org", "http://a.org/", "");
    check("http://a.org/", "a=1; Domain=", "http://a.org/", "a=1");
}

#[test]
fn what_belongs_to_many_is_refused() {
    // H19.
    check("http://a.com/", "a=1; Domain=com", "http://b.com/", "");
    check("http://a.com/", "a=1; Domain=.com", "http://a.com/", "");
    check("http://a.co.id/", "a=1; Domain=co.id", "http://b.co.id/", "");
    check("http://me.github.io/", "a=1; Domain=github.io", "http://you.github.io/", "");
    check("http://a.com/", "a=1; Domain=b.com", "http://b.com/", "");
    check("http://10.0.0.1/", "a=1; Domain=0.0.1", "http://10.0.0.1/", "");
    check("http://10.0.0.1/", "a=1; Domain=10.0.0.1", "http://10.0.0.1/", "a=1");
    check("http://localhost/", "a=1; Domain=localhost", "http://localhost/", "a=1");
    check("http://localhost/", "a=1; Domain=localhost", "http://x.localhost/", "");
}

#[test]
fn paths() {
    check("http://a.org/x/y", "a=1", "http://a.org/x/z", "a=1");
    check("http://a.org/x/y", "a=1", "http://a.org/x", "a=1");
    check("http://a.org/x/y", "a=1", "http://a.org/xy", "");
    check("http://a.org/x/y", "a=1; Path=/", "http://a.org/", "a=1");
    check("http://a.org/", "a=1; Path=/x/", "http://a.org/x/y", "a=1");
    check("http://a.org/", "a=1; Path=/x/", "http://a.org/x", "");
    check("http://a.org/", "a=1; Path=x", "http://a.org/", "a=1");
}

#[test]
fn the_more_specific_path_comes_first() {
    let mut jar = jar("http://a.org/", &["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/"]);
    assert_eq!(sent(&mut jar, "http://a.org/x"), "b=2; a=1; c=3");
}

#[test]
fn names_that_promise_something() {
    check("https://a.org/", "__Secure-a=1; Secure", "https://a.org/", "__Secure-a=1");
    check("https://a.org/", "__Secure-a=1", "https://a.org/", "");
    check("https://a.org/", "__Host-a=1; Secure; Path=/", "https://a.org/", "__Host-a=1");
    check("https://a.org/", "__host-a=1; Secure; Path=/; Domain=a.org", "https://a.org/", "");
    check("https://a.org/x", "__Host-a=1; Secure", "https://a.org/", "");
    check("http://a.org/", "__Host-a=1; Secure; Path=/", "http://a.org/", "");
}

#[test]
fn cookies_expire() {
    check("http://a.org/", "a=1; Max-Age=1", "http://a.org/", "a=1");
    check("http://a.org/", "a=1; Max-Age=0", "http://a.org/", "");
    check("http://a.org/", "a=1; Max-Age=-1", "http://a.org/", "");
    check("http://a.org/", "a=1; Max-Age=99999999999999999999", "http://a.org/", "a=1");
    check("http://a.org/", "a=1; Max-Age=soon", "http://a.org/", "a=1");
    check("http://a.org/", "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.org/", "");
    check("http://a.org/", "a=1; Expires=Fri, 31-Dec-9999 23:59:59 GMT", "http://a.org/", "a=1");
    let past_but_young = "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9";
    check("http://a.org/", past_but_young, "http://a.org/", "a=1");
    let mut jar = jar("http://a.org/", &["a=1; Max-Age=1"]);
    assert_eq!(jar.header_for(&url("http://a.org/"), Timestamp(NOW.0 + 1000)), None);
}

#[test]
fn a_cookie_replaces_its_predecessor() {
    let mut jar = jar("http://a.org/", &["a=1", "b=2", "a=3"]);
    assert_eq!(sent(&mut jar, "http://a.org/"), "b=2; a=3");
    jar.learn(&url("http://a.org/"), &answer(&["b=; Max-Age=0"]), NOW);
    assert_eq!(sent(&mut jar, "http://a.org/"), "a=3");
    assert_eq!(jar.cookies, 1);
}

#[test]
fn what_is_no_cookie() {
    // H19.
    for set_cookie in ["", "a", "=1", ";a=1", "a=b\tc", "a=é", "a\tb=1"] {
        check("http://a.org/", set_cookie, "http://a.org/", "");
    }
    check("http://a.org/", &format!("a={}", "v".repeat(4095)), "http://a.org/", "");
}

#[test]
fn a_thousand_large_cookies_are_few_and_a_short_header() {
    // H19.
    let large: Vec<String> = (0..1000).map(|n| format!("c{n}={}", "v".repeat(4000))).collect();
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let mut jar = jar("http://a.org/", &large);
    assert_eq!(jar.cookies, PER_ANSWER_MAX);
    let header = sent(&mut jar, "http://a.org/");
    assert!((4000..=SENT_BYTES_MAX).contains(&header.len()), "{}", header.len());
}

#[test]
fn the_jar_is_bounded() {
    let mut jar = CookieJar::default();
    for host in 0..100 {
        for round in 0..2 {
            let cookies: Vec<String> = (0..50).map(|n| format!("c{round}-{n}=1")).collect();
            let cookies: Vec<&str> = cookies.iter().map(String::as_str).collect();
            jar.learn(&url(&format!("http://h{host}.org/")), &answer(&cookies), NOW);
        }
        // This one stays in use.
        jar.learn(&url("http://used.org/"), &answer(&["a=1"]), NOW);
        assert!(jar.cookies <= COOKIES_MAX);
        let counted: usize = jar.by_domain.values().map(Vec::len).sum();
        assert_eq!(jar.cookies, counted);
        assert!(jar.by_domain.values().all(|cookies| cookies.len() <= PER_DOMAIN_MAX));
    }
    assert_eq!(sent(&mut jar, "http://used.org/"), "a=1");
    assert_eq!(sent(&mut jar, "http://h0.org/"), "", "the least used made room");
    assert!(sent(&mut jar, "http://h99.org/").starts_with("c1-0=1; "));
}

#[test]
fn cookies_of_the_operator() {
    let text = "# Netscape HTTP Cookie File\r\n\
                a.org\tFALSE\t/\tTRUE\t0\tsession\tabc\r\n\
                \n\
                #HttpOnly_.b.org\tTRUE\t/x\tFALSE\t4102444800\tid\t7\n\
                .com\tTRUE\t/\tFALSE\t0\twide\t1\n\
                c.org\tFALSE\t/\tFALSE\t1\told\t1";
    let mut jar = CookieJar::from_cookies_txt(text).unwrap();
    assert_eq!(sent(&mut jar, "https://a.org:8443/"), "session=abc");
    assert_eq!(sent(&mut jar, "http://a.org/"), "");
    assert_eq!(sent(&mut jar, "https://www.a.org/"), "");
    assert_eq!(sent(&mut jar, "http://www.b.org/x/y"), "id=7");
    assert_eq!(sent(&mut jar, "http://any.com/"), "");
    assert_eq!(sent(&mut jar, "http://c.org/"), "", "it has expired");
    jar.learn(&url("https://a.org/"), &answer(&["session=new; Path=/"]), NOW);
    assert_eq!(sent(&mut jar, "https://a.org/"), "session=new");
}

#[test]
fn a_line_that_is_no_cookie_is_named() {
    for line in [
        "a.org FALSE / TRUE 0 session abc",
        "a.org\tFALSE\t/\tTRUE\t0\tsession",
        "a.org\tFALSE\t/\tTRUE\t0\tsession\tabc\tmore",
        "a.org\tno\t/\tTRUE\t0\tsession\tabc",
        "a.org\tFALSE\t/\tTRUE\tsoon\tsession\tabc",
        "a.org\tFALSE\t/\tTRUE\t0\tsession\ta;b",
        "a b\tFALSE\t/\tTRUE\t0\tsession\tabc",
        "a.org\tFALSE\t/\tTRUE\t0\tsession\tab\u{1b}c",
    ] {
        let error = CookieJar::from_cookies_txt(&format!("# comment\n{line}\n")).unwrap_err();
        assert_eq!(error, 2, "{line:?}");
    }
}

#[test]
fn cookies_are_not_shown() {
    let mut jar = jar("http://a.org/", &["a=s3cret"]);
    assert_eq!(format!("{jar:?}"), "1 cookies");
    assert!(jar.header_for(&url("http://a.org/"), NOW).unwrap().is_sensitive());
}

proptest! {
    #[test]
    fn whatever_is_set_can_be_sent(set_cookie in "[ -~\t\u{80}-\u{ff}]{0,80}", text in "[ -~\t\n]{0,80}") {
        let mut jar = CookieJar::default();
        let from = url("https://a.org/x/y");
        jar.learn(&from, &answer(&[&set_cookie]), NOW);
        if let Some(header) = jar.header_for(&from, NOW) {
            prop_assert!(header.to_str().is_ok());
        }
        let _ = CookieJar::from_cookies_txt(&text);
    }

    /// Only the port and scheme that set it, with any attributes.
    #[test]
    fn no_cookie_changes_its_port_or_scheme(attributes in "(; (Domain=a[.]org|Domain=org|Secure|Path=/|Max-Age=9)){0,4}") {
        let mut jar = jar("https://a.org/", &[&format!("a=1{attributes}")]);
        prop_assert_eq!(sent(&mut jar, "http://a.org/"), "");
        prop_assert_eq!(sent(&mut jar, "https://b.org/"), "");
        if !attributes.contains("Domain=a.org") {
            prop_assert_eq!(sent(&mut jar, "https://a.org:8443/"), "");
        }
    }
}
