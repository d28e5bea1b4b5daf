//! From the bytes of a robots.txt to its records: names and values, line by line. Knows nothing of
//! groups.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use super::BYTES_MAX;

/// One line that says something, with its number from 1.
pub(super) struct RobotsLine<'text> {
    pub(super) number: u32,
    pub(super) record: Record<'text>,
}

/// The kinds of line that mean something to us. Values are trimmed, and may be empty.
pub(super) enum Record<'text> {
    UserAgent(&'text [u8]),
    Allow(&'text [u8]),
    Disallow(&'text [u8]),
    CrawlDelay(&'text [u8]),
    ContentSignal(&'text [u8]),
    Sitemap(&'text [u8]),
}

/// The part of a file that is read, without byte order mark: UTF-8 (or an unknown encoding) as it is,
/// UTF-16 turned into UTF-8. The rules of a site count even if its editor saved them oddly.
pub(super) fn readable(bytes: &[u8]) -> Cow<'_, [u8]> {
    let head = &bytes[..bytes.len().min(BYTES_MAX)];
    let text = match Encoding::for_bom(head) {
        None => Cow::Borrowed(head),
        Some((encoding, mark)) if encoding == UTF_8 => Cow::Borrowed(&head[mark..]),
        Some((encoding, mark)) => match encoding.decode_without_bom_handling(&head[mark..]).0 {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
    };
    if bytes.len() <= BYTES_MAX {
        return text;
    }
    // Half a line would mean something else: what is left of "Disallow: /private" may be
    // "Disallow: /", and of "Allow: /a" the whole site.
    let whole_lines = text.iter().rposition(|&byte| is_line_end(byte)).map_or(0, |at| at + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..whole_lines]),
        Cow::Owned(mut text) => {
            text.truncate(whole_lines);
            Cow::Owned(text)
        }
    }
}

/// The lines that say something to us, in order.
pub(super) fn records(text: &[u8]) -> impl Iterator<Item = RobotsLine<'_>> {
    let numbers = 1_u32..;
    numbers
        .zip(split_lines(text))
        .filter_map(|(number, line)| Some(RobotsLine { number, record: record(line)? }))
}

/// Lines end with LF, CR LF or CR alone.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.iter().position(|&byte| is_line_end(byte)) else {
            return rest.take();
        };
        let end_bytes = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[end + end_bytes..]);
        Some(&text[..end])
    })
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn record(line: &[u8]) -> Option<Record<'_>> {
    let before_comment = line.split(|&byte| byte == b'#').next()?;
    let (name, value) = name_and_value(before_comment.trim_ascii())?;
    let name = name.to_ascii_lowercase();
    let is_like = |spellings: &[&[u8]]| spellings.iter().any(|&word| name.starts_with(word));
    // The beginning of the name is enough, and the misspellings are frequent ones: Google's parser
    // reads them all like this, so people believe that their rules work.
    if is_like(&[b"user-agent", b"useragent", b"user agent"]) {
        Some(Record::UserAgent(value))
    } else if is_like(&[b"allow"]) {
        Some(Record::Allow(value))
    } else if is_like(&[
        b"disallow",
        b"dissallow",
        b"dissalow",
        b"disalow",
        b"diasllow",
        b"disallaw",
    ]) {
        Some(Record::Disallow(value))
    } else if is_like(&[b"crawl-delay", b"crawldelay", b"crawl delay"]) {
        Some(Record::CrawlDelay(value))
    } else if is_like(&[b"content-signal"]) {
        Some(Record::ContentSignal(value))
    } else if is_like(&[b"sitemap", b"site-map"]) {
        Some(Record::Sitemap(value))
    } else {
        None
    }
}

/// `name: value`, or `name value` where the colon was forgotten and there are just two words.
fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    if let Some(colon) = line.iter().position(|&byte| byte == b':') {
        return Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()));
    }
    let space = line.iter().position(is_space)?;
    let (name, value) = (&line[..space], line[space..].trim_ascii());
    if value.iter().any(is_space) { None } else { Some((name, value)) }
}
