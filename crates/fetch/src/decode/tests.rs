use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;

use super::*;

const TEXT: &[u8] = b"Selamat datang di halaman ini, selamat datang.";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bare_deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 3).unwrap()
}

/// `Hello, world!` with a final newline, by the reference encoder.
const BROTLI_HELLO: &[u8] = &[
    0x8b, 0x06, 0x80, b'H', b'e', b'l', b'l', b'o', b',', b' ', b'w', b'o', b'r', b'l', b'd', b'!',
    b'\n', 0x03,
];

/// 4 MiB of zeros.
const BROTLI_ZEROS: &[u8] =
    &[0x9b, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x07];

fn headers(codings: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for coding in codings {
        headers.append(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
    }
    headers
}

/// Decodes a body that comes in pieces of `piece` bytes.
fn decode(
    codings: &[&str],
    sent: &[u8],
    piece: usize,
    bytes_max: u64,
) -> Result<(Vec<u8>, Room), Reason> {
    let reason = |failure: Failure| failure.why;
    let mut decoder = Decoder::new(&headers(codings), bytes_max).map_err(reason)?;
    for piece in sent.chunks(piece) {
        if decoder.push(piece).map_err(reason)? == Room::None {
            return Ok((decoder.cut().map_err(reason)?, Room::None));
        }
    }
    Ok((decoder.finish().map_err(reason)?, Room::Left))
}

#[track_caller]
fn check(codings: &[&str], sent: &[u8], expect: Result<&[u8], Reason>) {
    for piece in [1, 7, usize::MAX] {
        let decoded = decode(codings, sent, piece, 1 << 20);
        assert_eq!(decoded.as_ref().map(|(body, _)| body.as_slice()).map_err(|why| *why), expect);
    }
}

#[test]
fn every_coding_that_we_ask_for() {
    // E8.
    check(&[], TEXT, Ok(TEXT));
    check(&["identity"], TEXT, Ok(TEXT));
    check(&["gzip"], &gzip(TEXT), Ok(TEXT));
    check(&["deflate"], &zlib(TEXT), Ok(TEXT));
    check(&["deflate"], &bare_deflate(TEXT), Ok(TEXT));
    check(&["br"], BROTLI_HELLO, Ok(b"Hello, world!\n"));
    check(&["zstd"], &zstd(TEXT), Ok(TEXT));
}

#[test]
fn odd_spellings() {
    // E5.
    check(&["GZip"], &gzip(TEXT), Ok(TEXT));
    check(&["x-gzip"], &gzip(TEXT), Ok(TEXT));
    check(&[" gzip ,"], &gzip(TEXT), Ok(TEXT));
}

#[test]
fn two_codings_are_undone_from_the_last_to_the_first() {
    check(&["zstd, gzip"], &gzip(&zstd(TEXT)), Ok(TEXT));
    check(&["gzip", "br"], BROTLI_HELLO, Err(Reason::DecodeError));
    check(&["zstd", "gzip"], &gzip(&zstd(TEXT)), Ok(TEXT));
}

#[test]
fn more_codings_are_refused() {
    // E4.
    check(&["gzip, gzip, gzip, gzip, gzip"], &gzip(TEXT), Err(Reason::DecodeError));
    check(&[&["gzip"; 1000].join(",")], &gzip(TEXT), Err(Reason::DecodeError));
}

#[test]
fn unknown_codings_are_never_passed_on() {
    // E5.
    check(&["x-evil"], &gzip(TEXT), Err(Reason::UnsupportedEncoding));
    check(&["gzip, x-evil"], &gzip(&gzip(TEXT)), Err(Reason::UnsupportedEncoding));
    for known_to_others in ["compress", "x-compress", "exi", "dcb", "aes128gcm", "pack200-gzip"] {
        check(&[known_to_others], TEXT, Err(Reason::UnsupportedEncoding));
    }
    let mut headers = HeaderMap::new();
    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("gzip, chunked"));
    let refused = Decoder::new(&headers, 100).err().unwrap();
    assert_eq!(refused.why, Reason::UnsupportedEncoding);
}

#[test]
fn a_word_that_is_no_coding_leaves_text_as_it_is() {
    for word in ["utf-8", "UTF-8", "none", "binary", "8bit", "null", "windows-1251", "text/html"] {
        check(&[word], TEXT, Ok(TEXT));
        check(&[word], b"", Ok(b""));
    }
    check(&["gzip, utf-8"], &gzip(TEXT), Ok(TEXT));
    check(&["utf-8", "gzip"], &gzip(TEXT), Ok(TEXT));
    check(&["utf-8"], b"caf\xe9", Ok(b"caf\xe9"));
}

#[test]
fn several_members_and_frames_are_one_body() {
    check(&["gzip"], &[gzip(b"a"), gzip(b""), gzip(b"b")].concat(), Ok(b"ab"));
    check(&["zstd"], &[zstd(b"a"), zstd(b""), zstd(b"b")].concat(), Ok(b"ab"));
}

#[test]
fn many_empty_members_are_nothing() {
    // E7.
    let (body, room) = decode(&["gzip"], &gzip(b"").repeat(200_000), 8192, 1 << 20).unwrap();
    assert_eq!((body.len(), room), (0, Room::Left));
}

#[test]
fn an_empty_body_is_empty() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        check(&[coding], b"", Ok(b""));
    }
}

#[test]
fn a_body_that_ends_early_is_an_error() {
    // E6.
    let cut = |whole: &[u8]| whole[..whole.len() - 1].to_vec();
    check(&["gzip"], &cut(&gzip(TEXT)), Err(Reason::DecodeError));
    check(&["deflate"], &cut(&zlib(TEXT)), Err(Reason::DecodeError));
    check(&["br"], &cut(BROTLI_HELLO), Err(Reason::DecodeError));
    check(&["zstd"], &cut(&zstd(TEXT)), Err(Reason::DecodeError));
}

#[test]
fn a_wrong_checksum_is_an_error() {
    // E6.
    let mut wrong = gzip(TEXT);
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    check(&["gzip"], &wrong, Err(Reason::DecodeError));
}

#[test]
fn plain_text_that_claims_to_be_compressed_is_an_error() {
    // E6.
    for coding in ["gzip", "deflate", "br", "zstd"] {
        check(&[coding], b"<html>plain</html>", Err(Reason::DecodeError));
    }
}

#[test]
fn garbage_behind_the_end_is_ignored() {
    // E6.
    check(&["gzip"], &[gzip(TEXT), b"\0\0\0".to_vec()].concat(), Ok(TEXT));
    check(&["deflate"], &[zlib(TEXT), b"garbage".to_vec()].concat(), Ok(TEXT));
    check(&["br"], &[BROTLI_HELLO, b"garbage"].concat(), Ok(b"Hello, world!\n"));
}

/// Checks that a bomb ends at the limit, wherever that is.
#[track_caller]
fn check_bomb(codings: &[&str], bomb: &[u8]) {
    for bytes_max in [0, 1, 1000, 1 << 20] {
        let (body, room) = decode(codings, bomb, 8192, bytes_max).unwrap();
        assert_eq!((body.len() as u64, room), (bytes_max, Room::None));
        assert!(body.capacity() as u64 <= 2 * bytes_max + 64 * 1024);
    }
}

#[test]
fn bombs_end_at_the_limit() {
    // E1.
    let zeros = vec![0; 64 << 20];
    check_bomb(&["gzip"], &gzip(&zeros));
    check_bomb(&["deflate"], &zlib(&zeros));
    check_bomb(&["br"], BROTLI_ZEROS);
    check_bomb(&["zstd"], &zstd(&zeros));
    check_bomb(&["gzip", "gzip"], &gzip(&gzip(&zeros)));
}

#[test]
fn a_bomb_that_decodes_to_nothing_ends_too() {
    // Between the two stages stands a gigabyte of empty members, in the body nothing.
    let empty_members = gzip(b"").repeat((16 << 20) / 20);
    let (body, room) = decode(&["gzip", "gzip"], &gzip(&empty_members), 8192, 1 << 20).unwrap();
    assert_eq!((body.len(), room), (0, Room::None));
}

#[test]
fn a_zstd_window_beyond_the_limit_is_refused() {
    // E2.
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&vec![7; 1 << 20]).unwrap();
    check(&["zstd"], &encoder.finish().unwrap(), Err(Reason::DecodeError));
}
