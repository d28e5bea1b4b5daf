//! What a made-up server says: [`FakeAnswer`]; and who says it: a [`Website`].

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;

/// One answer to one request. Framing headers (`content-length`) are left to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body.
    pub body: Bytes,
    /// How long the server takes before it says anything.
    pub delay: Duration,
    /// The connection is cut instead of answering.
    pub reset: bool,
    /// Nothing comes back at all. A real server can only cut the connection instead.
    pub lost: Option<Lost>,
}

/// How a request is lost on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// No answer: a dead host, or a dead line.
    Silent,
    /// The machine has no network to send it to.
    NoRoute,
}

impl FakeAnswer {
    /// A page with these links that says what no page of another number says.
    pub fn page_about(number: u64, links: &[&str]) -> Self {
        let word = |place: u64| -> String {
            let mut rest =
                (number + 1).wrapping_mul(place + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            std::iter::repeat_with(|| {
                let letter = b'a' + u8::try_from(rest % 26).expect("less than 26");
                rest /= 26;
                char::from(letter)
            })
            .take(5)
            .collect()
        };
        let words: Vec<String> = (0..40).map(word).collect();
        let links: String =
            links.iter().map(|link| format!("<a href=\"{link}\">x</a>\n")).collect();
        Self::html(format!(
            "<!doctype html><title>{}</title><p>{}</p>{links}",
            words[..3].join(" "),
            words.join(" ")
        ))
    }

    /// 200 with a body of this media type, at once.
    pub fn ok(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", Cow::Borrowed(media_type))],
            body: body.into(),
            delay: Duration::ZERO,
            reset: false,
            lost: None,
        }
    }

    /// An HTML page.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::ok("text/html; charset=utf-8", body)
    }

    /// A status and a line of text.
    pub fn plain(status: u16, text: &'static str) -> Self {
        Self { status, ..Self::ok("text/plain; charset=utf-8", text) }
    }

    /// The server sends the client elsewhere.
    pub fn redirect(status: u16, to: impl Into<Cow<'static, str>>) -> Self {
        let mut answer = Self::plain(status, "see there\n");
        answer.headers.push(("location", to.into()));
        answer
    }

    /// There is no such page.
    pub fn not_found() -> Self {
        Self::plain(404, "there is no such page\n")
    }

    /// The connection is cut.
    pub fn cut() -> Self {
        Self { reset: true, ..Self::plain(0, "") }
    }

    /// No answer: the host is dead, or the line is.
    pub fn silence() -> Self {
        Self { lost: Some(Lost::Silent), ..Self::cut() }
    }

    /// There is no network.
    pub fn no_route() -> Self {
        Self { lost: Some(Lost::NoRoute), ..Self::cut() }
    }

    /// The same answer, after a delay.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }
}

/// A GET request, as far as it decides the answer.
#[derive(Clone, Copy, Debug)]
pub struct FakeRequest<'a> {
    /// The value of the Host header: a name or an address, with the port if it is not the usual.
    pub host: &'a str,
    /// Path and query.
    pub target: &'a str,
}

/// Something that answers requests: the synthetic web with its faults, the demo site.
pub trait Website: Send + Sync {
    /// Where a host lives, or `None` if nothing here goes by that name. The port counts.
    fn address_of(&self, host: &str) -> Option<Ipv4Addr>;

    /// The answer, or `None` if nothing here goes by the name of the request's host.
    fn answer_to(&self, request: FakeRequest<'_>) -> Option<FakeAnswer>;
}
