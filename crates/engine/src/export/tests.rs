//! What a hand-written page looks like as collections.

use telusur_model::{PageUrl, RawPage};
use telusur_parse::{ContentLimits, read_page};

use super::*;
use crate::control::FoundContent;

const PAGE: &str = "<!doctype html><title>t</title><h1>=Top</h1>\
    <p><a href=/x rel=nofollow>an \"x\"</a> <img src=i.png alt='a, b' width=3></p>\
    <table><caption>c</caption><tr><th>k<th>v<tr><td>=1+1<td>\u{9b}2</table>\
    <ol><li>one<ul><li>two</ul></ol>\
    <form action=/go method=post><input name=q value=@x required></form><form></form>\
    <script>a(1,2)</script><style media=print>p{}</style>";

fn found() -> FoundContent {
    let raw = RawPage {
        url: PageUrl::parse("http://a.org/p").unwrap(),
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
        body: PAGE.into(),
        truncated: false,
        wire_bytes: 0,
    };
    let content = read_page(&raw, &ContentLimits::default());
    FoundContent { crawl: "c_1".to_owned(), page: "http://a.org/p".to_owned(), content }
}

fn written(kind: ContentKind, format: Format) -> String {
    let collection = Collection::new(Collected::Content(kind), format).unwrap();
    let mut output = Vec::new();
    collection.begin(&mut output).unwrap();
    let lines = collection.write_content(&mut output, &found()).unwrap();
    let text = String::from_utf8(output).unwrap();
    let heads = u64::from(format == Format::Csv);
    assert_eq!(text.lines().count() as u64, lines + heads, "{text}");
    text
}

#[track_caller]
fn check_csv(kind: ContentKind, expect: &[&str]) {
    let text = written(kind, Format::Csv);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, expect);
}

#[test]
fn every_kind_as_csv() {
    check_csv(
        ContentKind::Headings,
        &["crawl,page,index,level,text", "c_1,http://a.org/p,1,1,\"'=Top\""],
    );
    check_csv(
        ContentKind::Links,
        &[
            "crawl,page,index,url,anchor,kind,nofollow,rel",
            "c_1,http://a.org/p,1,http://a.org/x,\"an \"\"x\"\"\",anchor,true,nofollow",
        ],
    );
    check_csv(
        ContentKind::Images,
        &[
            "crawl,page,index,url,alt,width,height",
            "c_1,http://a.org/p,1,http://a.org/i.png,\"a, b\",3,",
        ],
    );
    check_csv(
        ContentKind::Tables,
        &[
            "crawl,page,index,caption,row,column,header,spanned,text",
            "c_1,http://a.org/p,1,c,1,1,true,false,k",
            "c_1,http://a.org/p,1,c,1,2,true,false,v",
            "c_1,http://a.org/p,1,c,2,1,false,false,\"'=1+1\"",
            "c_1,http://a.org/p,1,c,2,2,false,false,\u{fffd}2",
        ],
    );
    check_csv(
        ContentKind::Lists,
        &[
            "crawl,page,index,ordered,item,level,text",
            "c_1,http://a.org/p,1,true,1,0,one",
            "c_1,http://a.org/p,1,true,2,1,two",
        ],
    );
    check_csv(
        ContentKind::Forms,
        &[
            "crawl,page,index,action,method,field,name,kind,value,required",
            "c_1,http://a.org/p,1,http://a.org/go,post,1,q,text,\"'@x\",true",
            "c_1,http://a.org/p,2,http://a.org/p,get,,,,,",
        ],
    );
    check_csv(
        ContentKind::Scripts,
        &["crawl,page,index,url,kind,bytes,text", "c_1,http://a.org/p,1,,,6,\"a(1,2)\""],
    );
    check_csv(
        ContentKind::Styles,
        &["crawl,page,index,url,media,bytes,text", "c_1,http://a.org/p,1,,print,3,p{}"],
    );
}

#[test]
fn every_kind_as_json_lines() {
    for kind in ContentKind::ALL {
        let text = written(kind, Format::JsonLines);
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["crawl"], &line["page"]), (&"c_1".into(), &"http://a.org/p".into()));
            assert!(line["index"].as_u64().unwrap() > 0);
        }
        assert!(!text.is_empty(), "{kind}");
    }
    assert_eq!(
        written(ContentKind::Headings, Format::JsonLines),
        "{\"crawl\":\"c_1\",\"page\":\"http://a.org/p\",\"index\":1,\"level\":1,\"text\":\"=Top\"}\n"
    );
    let tables = written(ContentKind::Tables, Format::JsonLines);
    assert!(tables.contains("\"text\":\"\\u009b2\""), "{tables}");
}
