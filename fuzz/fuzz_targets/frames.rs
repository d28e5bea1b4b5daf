//! Any bytes from the other end of the socket are frames or an error, and what is read can be sent
//! again and is read as the same.
//!
//! `cargo +nightly fuzz run frames`. The first byte chooses what is expected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use telusur_parse_pool::VisibleText;
use telusur_parse_pool::frames::{Batch, Depth, Frame, append_answer, send_batch, send_hello};

fuzz_target!(|data: &[u8]| {
    let Some((expected, mut wire)) = data.split_first() else { return };
    match expected % 3 {
        0 => {
            let depth = match expected / 3 % 3 {
                0 => Depth::Crawl(VisibleText::Taken),
                1 => Depth::Search(VisibleText::Taken),
                _ => Depth::Everything,
            };
            while let Ok(frame) = Frame::read(&mut wire) {
                let Ok(answer) = frame.into_answer(depth) else { continue };
                let mut again = Vec::new();
                append_answer(&mut again, &answer).expect("an answer that was read can be sent");
                let read = Frame::read(&mut &again[..]).and_then(|it| it.into_answer(depth));
                assert_eq!(read.expect("an answer that was sent can be read"), answer);
            }
        }
        1 => {
            while let Ok(batch) = Batch::read(&mut wire) {
                let depth = batch.depth();
                let Ok(pages) = batch.pages(&mut wire) else { return };
                let mut again = Vec::new();
                send_batch(&mut again, depth, &pages.iter().collect::<Vec<_>>())
                    .expect("a batch that was read can be sent");
                let mut again = &again[..];
                let batch = Batch::read(&mut again).expect("a batch that was sent can be read");
                assert_eq!(batch.depth(), depth);
                assert_eq!(batch.pages(&mut again).expect("and so can its pages"), pages);
            }
        }
        _ => {
            let Ok(hello) = Frame::read(&mut wire).and_then(Frame::into_hello) else { return };
            let mut again = Vec::new();
            send_hello(&mut again, &hello).expect("a greeting that was read can be sent");
        }
    }
});
