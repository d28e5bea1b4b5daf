//! The files of the demo site that are no pages: pictures, a PDF, a table and a style sheet, all
//! made on the spot.

use std::fmt::Write as _;

use super::layout::STRING_TAKES_IT;
use crate::random::Dice;

pub(super) const STYLE: &str = "body { max-width: 42em; margin: 2em auto; font-family: serif; }\n\
    nav a { margin-right: 1em; }\ntable { border-collapse: collapse; }\n\
    td, th { border: 1px solid #999; padding: 0.2em 0.6em; text-align: left; }\n";

pub(super) const RIVERS_CSV: &str = "river,length_km,city\nKapuas,1143,Pontianak\n\
    Mahakam,920,Samarinda\nMusi,750,Palembang\nBengawan Solo,600,Surakarta\nCiliwung,120,Jakarta\n";

/// A pattern of circles that depends on the seed.
pub(super) fn svg(seed: u64) -> String {
    let mut dice = Dice::of(&[seed, SVG]);
    let mut image = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"240\" height=\"120\" \
         viewBox=\"0 0 240 120\">\n",
    );
    for _ in 0..12 {
        let (x, y, radius) = (dice.below(240), dice.below(120), 6 + dice.below(24));
        let hue = dice.below(360);
        writeln!(
            image,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"hsl({hue} 60% 60% / 0.7)\"/>"
        )
        .expect(STRING_TAKES_IT);
    }
    image + "</svg>\n"
}

/// Keeps the dice of the two kinds of picture apart.
const SVG: u64 = 1;
const PNG: u64 = 2;

/// Every row of a PNG begins with the filter that was applied to it.
const NO_FILTER: [u8; 1] = [0];

/// Pixels along each side of a PNG.
const PNG_SIDE: u16 = 16;

/// A small picture in two colours, mirrored left to right, that depends on the seed.
pub(super) fn png(seed: u64) -> Vec<u8> {
    let mut dice = Dice::of(&[seed, PNG]);
    let colour = dice.bits().to_be_bytes();
    let mut pixels = Vec::new();
    for _ in 0..PNG_SIDE {
        pixels.extend_from_slice(&NO_FILTER);
        let bits = dice.bits();
        for x in 0..PNG_SIDE {
            let is_set = bits >> x.min(PNG_SIDE - 1 - x) & 1 == 1;
            pixels.extend_from_slice(if is_set { &colour[..3] } else { &[0xF4, 0xF1, 0xEA] });
        }
    }
    let [high, low] = PNG_SIDE.to_be_bytes();
    // Width, height, 8 bits per channel, colour type 2 (RGB), and the only compression, filter and
    // interlace methods there are.
    let header = [0, 0, high, low, 0, 0, high, low, 8, 2, 0, 0, 0];
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    push_chunk(&mut file, *b"IHDR", &header);
    push_chunk(&mut file, *b"IDAT", &zlib_stored(&pixels));
    push_chunk(&mut file, *b"IEND", &[]);
    file
}

fn push_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("pictures here have a kilobyte");
    file.extend_from_slice(&length.to_be_bytes());
    let start = file.len();
    file.extend_from_slice(&kind);
    file.extend_from_slice(data);
    let checksum = crc32(&file[start..]);
    file.extend_from_slice(&checksum.to_be_bytes());
}

/// A zlib stream (RFC 1950) of one block that is not compressed.
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("pictures here have a kilobyte");
    let mut stream = vec![0x78, 0x01, 0x01];
    stream.extend_from_slice(&length.to_le_bytes());
    stream.extend_from_slice(&(!length).to_le_bytes());
    stream.extend_from_slice(data);
    stream.extend_from_slice(&adler32(data).to_be_bytes());
    stream
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

fn adler32(data: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1, 0);
    for &byte in data {
        low = (low + u32::from(byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}

/// A PDF of one page that shows these lines.
pub(super) fn pdf(lines: &[&str]) -> Vec<u8> {
    let mut text = String::from("BT /F1 14 Tf 18 TL 72 770 Td\n");
    for line in lines {
        let escaped = line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        writeln!(text, "({escaped}) Tj T*").expect(STRING_TAKES_IT);
    }
    text.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut entries = String::from("0000000000 65535 f \n");
    for (number, object) in (1..).zip(&objects) {
        writeln!(entries, "{:010} 00000 n ", file.len()).expect(STRING_TAKES_IT);
        write!(file, "{number} 0 obj\n{object}\nendobj\n").expect(STRING_TAKES_IT);
    }
    let (table_at, count) = (file.len(), objects.len() + 1);
    write!(
        file,
        "xref\n0 {count}\n{entries}trailer\n<< /Size {count} /Root 1 0 R >>\n\
         startxref\n{table_at}\n%%EOF\n"
    )
    .expect(STRING_TAKES_IT);
    file.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_known_ones() {
        // The check values of the two algorithms, as their specifications print them.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }

    #[test]
    fn every_entry_of_the_pdf_leads_to_its_object() {
        let file = String::from_utf8(pdf(&["one (1)", "two"])).unwrap();
        assert!(file.contains("(one \\(1\\)) Tj"));
        let table_at: usize =
            file.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        let entries = file[table_at..].lines().skip(3).take(5);
        for (number, entry) in (1..).zip(entries) {
            let at: usize = entry[..10].parse().unwrap();
            assert!(file[at..].starts_with(&format!("{number} 0 obj\n")), "{entry}");
            assert_eq!(entry.len(), 19, "with its line break an entry has 20 bytes");
        }
    }
}
