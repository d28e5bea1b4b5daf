//! From the bytes of a file to its text: gzip, then the character encoding, both within limits.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

use encoding_rs::{Encoding, UTF_8};
use flate2::read::MultiGzDecoder;

use super::{BYTES_MAX, Trouble};

/// The text of a file, perhaps with a byte order mark. Bytes that are no text in its encoding became
/// U+FFFD.
pub(super) struct Unpacked<'bytes> {
    pub(super) text: Cow<'bytes, str>,
    /// Why it is not the whole text.
    pub(super) trouble: Option<Trouble>,
}

pub(super) fn unpack(bytes: &[u8]) -> Unpacked<'_> {
    let (bytes, trouble) = if bytes.starts_with(&[0x1f, 0x8b]) {
        let (bytes, trouble) = gunzip(bytes);
        (Cow::Owned(bytes), trouble)
    } else if bytes.len() > BYTES_MAX {
        (Cow::Borrowed(&bytes[..BYTES_MAX]), Some(Trouble::TooLarge))
    } else {
        (Cow::Borrowed(bytes), None)
    };
    let text = match bytes {
        Cow::Borrowed(bytes) => decode(bytes),
        // Nearly all are UTF-8: no second copy of up to 50 MiB for them.
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|not_utf8| decode(not_utf8.as_bytes()).into_owned()),
        ),
    };
    Unpacked { text, trouble }
}

/// What can be decompressed, up to the limit.
fn gunzip(bytes: &[u8]) -> (Vec<u8>, Option<Trouble>) {
    let one_too_many = u64::try_from(BYTES_MAX + 1).expect("50 MiB fits");
    let mut decoded = Vec::new();
    // On an error, what came before it stays in `decoded`.
    let result = MultiGzDecoder::new(bytes).take(one_too_many).read_to_end(&mut decoded);
    let trouble = match result {
        Ok(_) if decoded.len() > BYTES_MAX => {
            decoded.truncate(BYTES_MAX);
            Some(Trouble::TooLarge)
        }
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(Trouble::Truncated),
        Err(error) => Some(Trouble::DecodeError(error.to_string())),
    };
    (decoded, trouble)
}

fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match Encoding::for_bom(bytes) {
        Some((encoding, mark)) if encoding != UTF_8 => {
            return encoding.decode_without_bom_handling(&bytes[mark..]).0;
        }
        _ => {}
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        // Cut within a character: the file was truncated, or we cut it at the limit.
        Err(error) if error.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..error.valid_up_to()])
        }
        // Declarations are often wrong, so they are asked only when the bytes are not UTF-8.
        Err(_) => declared_encoding(bytes).unwrap_or(UTF_8).decode_without_bom_handling(bytes).0,
    }
}

/// The encoding that an XML declaration names, unless it contradicts its own spelling: without a
/// byte order mark these bytes are not UTF-16.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    /// Declarations stand at the very beginning, and are short.
    const DECLARATION_BYTES_MAX: usize = 256;
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES_MAX)];
    let declaration = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(declaration, b"?>")?;
    let declaration = &declaration[..end];
    let name_at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let mut quoted = declaration[name_at..].split(|byte| matches!(byte, b'"' | b'\''));
    let encoding = Encoding::for_label(quoted.nth(1)?)?;
    encoding.is_ascii_compatible().then_some(encoding)
}
