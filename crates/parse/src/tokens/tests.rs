//! The tokenizer against the one of html5ever, which passes the tests of the standard.

use std::cell::{Cell, RefCell};

use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{self, Token, TokenSink, TokenSinkResult, TokenizerOpts};
use proptest::prelude::*;

use super::*;
use crate::tokens::Detail;
use crate::tokens::attributes::{attributes_of, is_of_font};

/// A token in a form that both tokenizers can be brought to.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Text(String),
    Nul,
    Comment,
    Doctype(Doctype),
    Start(LocalName, Vec<(LocalName, String)>, bool),
    End(LocalName),
}

#[derive(Default)]
struct Record {
    seen: Vec<Seen>,
    in_svg: bool,
}

impl Record {
    fn push(&mut self, seen: Seen) {
        match (self.seen.last_mut(), seen) {
            // html5ever makes a token even of an empty CDATA section.
            (_, Seen::Text(nothing)) if nothing.is_empty() => {}
            (Some(Seen::Text(held)), Seen::Text(more)) => held.push_str(&more),
            (_, seen) => self.seen.push(seen),
        }
    }

    fn start(&mut self, tag: &Tag) -> Next {
        let wanted = attributes_of(&tag.name, Detail::Crawl);
        let attributes = tag
            .attrs
            .iter()
            .filter(|attribute| wanted.contains(&attribute.name.local))
            .map(|attribute| {
                let name = &attribute.name.local;
                let value = if is_of_font(name) { "" } else { &*attribute.value };
                (name.clone(), value.to_owned())
            })
            .collect();
        self.in_svg |= tag.name == local_name!("svg");
        self.push(Seen::Start(tag.name.clone(), attributes, tag.self_closing));
        match &*tag.name {
            "title" | "textarea" => Next::Raw(RawKind::Rcdata),
            "style" | "xmp" => Next::Raw(RawKind::Rawtext),
            "script" => Next::Raw(RawKind::ScriptData),
            "plaintext" => Next::Plaintext,
            _ => Next::Markup,
        }
    }

    fn end(&mut self, name: LocalName) {
        self.in_svg &= name != local_name!("svg");
        self.push(Seen::End(name));
    }
}

impl Sink for Record {
    fn text(&mut self, text: StrTendril) {
        assert!(!text.is_empty(), "empty text is no token");
        self.push(Seen::Text(text.to_string()));
    }

    fn nul(&mut self) {
        self.push(Seen::Nul);
    }

    fn comment(&mut self) {
        self.push(Seen::Comment);
    }

    fn doctype(&mut self, doctype: Doctype) {
        self.push(Seen::Doctype(doctype));
    }

    fn start_tag(&mut self, tag: Tag) -> Next {
        self.start(&tag)
    }

    fn end_tag(&mut self, name: LocalName) {
        self.end(name);
    }

    fn in_foreign_content(&self) -> bool {
        self.in_svg
    }
}

/// The same record, as html5ever's tokenizer wants to write it.
#[derive(Default)]
struct Reference {
    record: RefCell<Record>,
    ended: Cell<bool>,
}

impl TokenSink for Reference {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut record = self.record.borrow_mut();
        match token {
            Token::CharacterTokens(text) => record.push(Seen::Text(text.to_string())),
            Token::NullCharacterToken => record.push(Seen::Nul),
            Token::CommentToken(_) => record.push(Seen::Comment),
            Token::DoctypeToken(doctype) => record.push(Seen::Doctype(doctype)),
            Token::EOFToken => self.ended.set(true),
            Token::ParseError(_) => {}
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => record.end(tag.name),
            Token::TagToken(tag) => match record.start(&tag) {
                Next::Markup => {}
                Next::Raw(kind) => return TokenSinkResult::RawData(kind),
                Next::Plaintext => return TokenSinkResult::Plaintext,
            },
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.record.borrow().in_svg
    }
}

fn tokens(page: &str) -> Vec<Seen> {
    let text = text::unix_lines(page);
    let mut tokenizer = Tokenizer::new(&text, Syntax::Html, usize::MAX, Record::default());
    tokenizer.run();
    tokenizer.sink.seen
}

fn reference_tokens(page: &str) -> Vec<Seen> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let options = TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() };
    let tokenizer = tokenizer::Tokenizer::new(Reference::default(), options);
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    assert!(tokenizer.sink.ended.get());
    tokenizer.sink.record.into_inner().seen
}

#[track_caller]
fn check(page: &str) {
    assert_eq!(tokens(page), reference_tokens(page), "{page:?}");
}

#[test]
fn tags() {
    check("<p>a</p><br/><A HREF='x' rel=y>b</a ><p/ ><p / x>");
    check("<a href=1 HREF=2 href>x");
    check("<a href=\"a'b\"rel='c\"d'href=z>x");
    check("<a href=>x<a href= >y<a =href=q>z<a href = \n 'v'>");
    check("<a/href=/x/>y<a href=a/>z<a href=\"x\"/>");
    check("a<b a < b a<1 <é <> </> </ > </1> <");
    check("<p");
    check("<p a");
    check("<p a='x");
    check("<p a=x");
    check("</p a='>'>x</");
    check("<a href=a\0b rel\0=x><p\0q></P\0>");
}

#[test]
fn comments() {
    check("<!---->a<!-->b<!--->c<!--x-->d<!--x--!>e<!--x--!-->f<!----!>g<!---!>h-->i");
    check("<!-- <!-- --> a <!--<!--> b <!--<!-> c --> d<!--x--->e");
    check("<!x>a<!>b<?php ?>c</ x>d<!-x>e<![CDATA[f]]>g");
    for end in ["", "-", "--", "--!", "<", "<!", "<!-", "<!--"] {
        check(&format!("a<!--x{end}"));
        check(&format!("a<!--{end}"));
    }
}

#[test]
fn document_types() {
    check("<!DOCTYPE html>x<!doctype>y<!doctype >z<!DoctypeHTML>");
    check("<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" 'http://x'>a");
    check(
        "<!doctype html public 'a'>1<!doctype html public'a''b'>2<!doctype html system \"x\" y>3",
    );
    check("<!doctype html public a>1<!doctype html publi>2<!doctype html public 'a' b>3");
    check("<!doctype html public 'a>1<!doctype html system >2<!doctype html system 'a' >3");
    for cut in 0.."<!DOCTYPE html PUBLIC 'a' 'b' >".len() {
        check(&"<!DOCTYPE html PUBLIC 'a' 'b' >"[..cut]);
        check(&format!("{}>x", &"<!DOCTYPE html SYSTEM 'a' y"[..cut.min(27)]));
    }
}

#[test]
fn raw_text() {
    check("<title>a<b>&amp;</b></TITLE >x");
    check("<title>a</titles></title");
    check("<title>a</title");
    check("<title>a</title x");
    check("<style>a&amp;<!-- </style> -->");
    check("<textarea>\0</textarea/>\0<plaintext>a</plaintext>&amp;<");
}

#[test]
fn scripts() {
    check("<script>a</script>b");
    check("<script><!-- a </script>b");
    check("<script><!-- <script> a </script> b --> c </script>d");
    check("<script><!-- <script> a --> b </script> c");
    check("<script><!--> <script> </script>d");
    check("<script><!---> <script> </script>d");
    check("<script><!-<script></script>d");
    check("<script><!-- <script> </script> </script>d");
    check("<script><!-- <scripty> </script>d");
    check("<script><!-- <script/</script></script>d");
    check("<script><!--/script>&amp");
    check("<script>\0</script");
}

#[test]
fn foreign_content() {
    check("<svg><![CDATA[a<b>]]c\0]]>d</svg><![CDATA[e]]>");
    check("<svg><![CDATA[a");
    check("<svg><![CDATA[]]>");
}

#[test]
fn references() {
    check("&amp; &ampx &notit; &#65;&#x42 &#xD800; &#0; &bogus; &");
    check("<a href='?a&copy=1&amp;b&copy'>&copy=1<a href=&amp;&lt>");
    check("<title>&lt;&#39;</title>&lt;");
}

#[test]
fn line_ends() {
    check("a\r\nb\rc<a href='x\r\ny'>\r");
}

#[test]
fn attributes_beyond_the_limit_are_left_out() {
    let mut tokenizer = Tokenizer::new("<a b c href=x>y", Syntax::Html, 2, Record::default());
    tokenizer.run();
    assert!(tokenizer.too_many_attributes);
    assert_eq!(
        tokenizer.sink.seen,
        [Seen::Start(local_name!("a"), vec![], false), Seen::Text("y".to_owned())]
    );
}

#[test]
fn xhtml_elements_may_close_themselves() {
    let page = "<script src='x'/><p>a</p><br/>";
    let mut tokenizer = Tokenizer::new(page, Syntax::Xhtml, 9, Record::default());
    tokenizer.run();
    assert_eq!(
        tokenizer.sink.seen,
        [
            Seen::Start(local_name!("script"), vec![], true),
            Seen::End(local_name!("script")),
            Seen::Start(local_name!("p"), vec![], false),
            Seen::Text("a".to_owned()),
            Seen::End(local_name!("p")),
            Seen::Start(local_name!("br"), vec![], true),
        ]
    );
}

/// Pieces whose neighbourhood is where tokenizers go wrong.
fn crooked_page() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "/",
        "=",
        "\"",
        "'",
        "!",
        "-",
        "--",
        "<!--",
        "-->",
        "--!>",
        "?",
        " ",
        "\n",
        "\t",
        "\r",
        "\0",
        "&",
        ";",
        "#",
        "&amp",
        "&not",
        "&#x41",
        "é",
        "a",
        "B",
        "x1",
        "href",
        "rel",
        "<a ",
        "<A HREF=",
        "<p>",
        "<meta name=",
        "<font color=x ",
        "<script>",
        "</script>",
        "script",
        "<title>",
        "</title>",
        "<style>",
        "</style ",
        "<textarea>",
        "</textarea",
        "<plaintext>",
        "<svg>",
        "</svg>",
        "<![CDATA[",
        "]]>",
        "]",
        "<!doctype ",
        "html",
        "public",
        "system",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn crooked_pages_give_the_same_tokens(page in crooked_page()) {
        prop_assert_eq!(tokens(&page), reference_tokens(&page));
    }
}
