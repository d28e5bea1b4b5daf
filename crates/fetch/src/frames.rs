//! [`FrameCounter`]: how much of an HTTP/2 stream is anything but bodies. Reads the nine bytes in front
//! of each frame and nothing else.
//!
//! Bodies are bounded by the windows that we grant and by the size that a page may have. All other
//! frames are free for the sender, and each costs us the time to read it: a server could keep us busy
//! with frames that need no answer for as long as a visit may take.

/// Length (3), type (1), flags (1), stream (4): RFC 9113, section 4.1.
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;

/// Counts the bytes of frames other than DATA. How many of those may be small, h2 bounds itself.
#[derive(Default)]
pub(crate) struct FrameCounter {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    payload_bytes_left: usize,
}

impl FrameCounter {
    /// Takes the next bytes of the stream; gives how many of them are no body.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut counted = 0;
        while !bytes.is_empty() {
            if self.header_bytes < HEADER_BYTES {
                let taken = bytes.len().min(HEADER_BYTES - self.header_bytes);
                self.header[self.header_bytes..][..taken].copy_from_slice(&bytes[..taken]);
                self.header_bytes += taken;
                bytes = &bytes[taken..];
                if self.header_bytes < HEADER_BYTES {
                    break;
                }
                let [a, b, c, ..] = self.header;
                self.payload_bytes_left =
                    usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                if !self.is_data() {
                    counted += HEADER_BYTES;
                }
            }
            let taken = bytes.len().min(self.payload_bytes_left);
            if !self.is_data() {
                counted += taken;
            }
            self.payload_bytes_left -= taken;
            bytes = &bytes[taken..];
            if self.payload_bytes_left == 0 {
                self.header_bytes = 0;
            }
        }
        u64::try_from(counted).unwrap_or(u64::MAX)
    }

    fn is_data(&self) -> bool {
        self.header[3] == DATA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn everything_but_bodies_is_counted_however_it_is_cut() {
        let stream = [
            frame(4, &[]),
            frame(0, &[7; 70_000]),
            frame(2, &[0; 5]),
            frame(0, b""),
            frame(0xfa, &[0; 300]),
        ]
        .concat();
        for piece in [1, 2, 8, 9, 10, 1000, stream.len()] {
            let mut counter = FrameCounter::default();
            let counted: u64 = stream.chunks(piece).map(|bytes| counter.count(bytes)).sum();
            assert_eq!(counted, 9 + 14 + 309, "pieces of {piece}");
        }
    }
}
