//! What pages of every kind are about. The pages are made up, with the furniture that such pages
//! have; `[in]` marks words that belong to the content, `[out]` words that do not.

use crate::tests::raw_page;
use crate::{ContentLimits, read_page};

/// Every block with `[in]` must be there, no block with `[out]` may be.
#[track_caller]
fn check(body: &str) {
    let html =
        format!("<!doctype html><html lang=en>{HEAD}<body>{TOP}{body}{BOTTOM}</body></html>");
    let page = raw_page("text/html; charset=utf-8", html.as_bytes());
    let text = read_page(&page, &ContentLimits::default()).text;
    let missing = html.matches("[in]").count() - text.matches("[in]").count();
    assert!(missing == 0 && !text.contains("[out]"), "{missing} missing of:\n{text}");
}

const HEAD: &str = "<head><title>Bridges of the north - The Daily River</title></head>";

const TOP: &str = "
<header class=site-header><a href=/>The Daily River [out]</a>
<nav class=main-menu><ul><li><a href=/news>News [out]</a><li><a href=/sports>Sports [out]</a>
<li><a href=/shop>Shop [out]</a><li><a href=/contact>Contact [out]</a></ul></nav></header>";

const BOTTOM: &str = "
<div class='cookie-banner'><p>We use cookies to make this site better. [out]</p>
<button>Accept all [out]</button></div>
<footer class=site-footer><ul><li><a href=/terms>Terms of use [out]</a><li><a href=/privacy>Privacy
[out]</a><li><a href=/jobs>Jobs [out]</a></ul><p>Copyright 2024 The Daily River. All rights reserved.
[out]</p></footer>";

const PARAGRAPHS: &str = "
<p>The oldest bridge of the north was built by hand, and it took the people of three villages more
than thirty years to finish it. [in]</p>
<p>For a long time it was the only way across, so that everybody who wanted to go to the market had
to pay for it, which made the owner of the bridge a rich man. [in]</p>
<h2>What it cost [in]</h2>
<p>Nobody knows exactly what the bridge cost, since the books were lost in the great flood, but
there are letters that speak of forty horses and a house. [in]</p>
<p>When the railway came, the bridge lost its meaning, and for a century it was used by nobody but
farmers and their cattle, until the first tourists arrived. [in]</p>";

#[test]
fn article() {
    check(&format!(
        "<main><article class=post><h1>Bridges of the north</h1><p class=byline>By Ida B.</p>
         <div class=entry-content>{PARAGRAPHS}</div>
         <div class=share><a href=/f>Share on Facebook [out]</a> <a href=/t>Tweet [out]</a></div>
         </article><aside class=sidebar><h3>Most read [out]</h3><ul><li><a href=/1>Ten tunnels that
         changed the world [out]</a><li><a href=/2>The last ferry [out]</a></ul></aside>
         <section class=related-posts><h3>Related stories [out]</h3>
         <div class=card><a href=/3>A river runs dry [out]</a></div>
         <div class=card><a href=/4>Boats for everyone [out]</a></div></section></main>"
    ));
}

#[test]
fn article_without_any_helpful_name() {
    check(&format!(
        "<div><div><div><h1>Bridges of the north</h1>{PARAGRAPHS}</div><div><div><a href=/1>Ten
         tunnels [out]</a></div><div><a href=/2>The last ferry [out]</a></div><div><a href=/3>A river
         runs dry [out]</a></div></div></div></div>"
    ));
}

#[test]
fn forum() {
    let post = |author: &str, text: &str| {
        format!(
            "<div class=post id=p1><div class=post-author><a href=/u/{author}>{author}</a></div>
             <div class=post-body><p>{text}</p></div><div class=post-actions><a href=/r>Reply
             [out]</a> <a href=/q>Report [out]</a></div></div>"
        )
    };
    let posts = [
        post(
            "river_fan",
            "Has anybody here walked over the old bridge lately? I would like to know whether it is still open to people with bicycles. [in]",
        ),
        post(
            "ida",
            "Yes, it is open, but you have to get off and push, because the stones are in a bad state after the winter. [in]",
        ),
        post(
            "bert77",
            "I was there last week. They closed one side of it, and the other side was very slippery, so I would wait until spring. [in]",
        ),
        post(
            "river_fan",
            "Thank you both, that helps a lot. I will wait then and tell you how it was when I come back. [in]",
        ),
    ];
    check(&format!(
        "<main><h1>Bridges of the north</h1><div class=thread>{}</div></main>",
        posts.concat()
    ));
}

#[test]
fn documentation() {
    check(
        "<div class=docs-layout><nav class=sidebar><ul><li><a href=/i>Installation [out]</a><li><a
         href=/q>Quick start [out]</a><li><a href=/r>Reference [out]</a></ul></nav>
         <main class=docs-content><h1>Bridges of the north</h1><p>A bridge connects two queues. It
         reads from one side and writes to the other, and it never loses a message. [in]</p>
         <h2>Creating a bridge [in]</h2><p>Call the function below with the names of both queues. It
         returns once both sides have agreed on a protocol. [in]</p>
         <pre><code class=language-rust>let bridge = Bridge::new(left, right); // [in]</code></pre>
         <h2>Options [in]</h2><ul><li>The size of the buffer in messages, which is ten by default.
         [in]<li>The time after which an idle side is closed, in seconds. [in]</ul></main></div>",
    );
}

#[test]
fn product() {
    check(
        "<main class=product-page><div class=product-gallery><img src=/1.jpg alt=front></div>
         <div class=product-info><h1>Bridges of the north</h1><form class=cart><button>Add to cart
         [out]</button></form>
         <div class=product-description><p>A hand-made model of the oldest bridge of the north, cut
         from a single piece of oak and oiled three times. [in]</p><p>The model comes with a stand and
         a small book that tells the story of the bridge and of its builders. [in]</p></div></div>
         <section class=recommendations><h3>You may also like [out]</h3><div class=product-card><a
         href=/p/2>Model ferry [out]</a></div><div class=product-card><a href=/p/3>Model
         lighthouse [out]</a></div></section></main>",
    );
}

#[test]
fn listing() {
    let entry = |name: &str, text: &str| {
        format!(
            "<div class=listing-item><h2><a href=/{name}>{name}</a></h2><p class=excerpt>{text}</p></div>"
        )
    };
    let entries = [
        entry(
            "Stone-bridge",
            "The oldest of them all, built by hand over thirty years and still in use today. [in]",
        ),
        entry(
            "Rope-bridge",
            "Sixty metres long and not for everybody, it swings in the wind above the gorge. [in]",
        ),
        entry(
            "Iron-bridge",
            "Built for the railway, it carried its last train forty years ago and is a museum now. [in]",
        ),
        entry(
            "New-bridge",
            "Four lanes, two bicycle paths and a restaurant in the middle of the river. [in]",
        ),
    ];
    check(&format!(
        "<main><h1>Bridges of the north</h1><div class=listing>{}</div><div class=pagination>
         <a href=?p=2>2 [out]</a> <a href=?p=3>3 [out]</a> <a href=?p=2>Next page [out]</a></div></main>",
        entries.concat()
    ));
}

#[test]
fn service() {
    check(
        "<main><section class=hero><h1>Bridges of the north</h1><p>We repair bridges of stone, wood
         and iron, wherever they are and however old they may be. [in]</p></section>
         <section class=services><h2>What we do for you [in]</h2><div class=service-card><h3>Survey
         [in]</h3><p>Our engineers look at every stone and tell you what must be done first. [in]</p>
         </div><div class=service-card><h3>Repair [in]</h3><p>We work with the materials and the tools
         of the time when your bridge was built. [in]</p></div></section></main>",
    );
}

#[test]
fn the_same_text_twice_is_kept_once() {
    let html = format!("<article><h1>A</h1>{PARAGRAPHS}</article><div hidden>{PARAGRAPHS}</div>");
    let page = raw_page("text/html; charset=utf-8", html.as_bytes());
    let text = read_page(&page, &ContentLimits::default()).text;
    assert_eq!(text.matches("thirty years to finish it").count(), 1, "{text}");
}

#[test]
fn content_that_waits_for_scripts_to_be_off() {
    let html =
        format!("<body><div id=app></div><noscript><h1>A</h1>{PARAGRAPHS}</noscript></body>");
    let page = raw_page("text/html; charset=utf-8", html.as_bytes());
    let text = read_page(&page, &ContentLimits::default()).text;
    assert_eq!(text.matches("[in]").count(), 5, "{text}");
}

#[test]
fn pages_without_content() {
    for html in ["", "<body></body>", "<nav><a href=/>Home</a></nav>", "<p> </p>", "<img src=x>"] {
        let page = raw_page("text/html; charset=utf-8", html.as_bytes());
        let content = read_page(&page, &ContentLimits::default());
        assert!(content.text.len() <= "Home".len(), "{html}: {}", content.text);
    }
}

#[test]
fn line_ends_alone_behind_the_last_block() {
    let page = raw_page("text/html", b"<p>one</p><pre>\n\n</pre>");
    let content = read_page(&page, &ContentLimits::default());
    assert!(content.visible_text.contains("one"));
}
