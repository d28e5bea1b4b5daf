use super::*;
use crate::jail::Wall;

const LINKS: Depth = Depth::Crawl(VisibleText::Left);

fn page(body: &'static [u8]) -> RawPage {
    RawPage {
        url: PageUrl::parse("http://a.org/x?y=1").unwrap(),
        status: 404,
        headers: vec![
            ("content-type".to_owned(), "text/html".to_owned()),
            ("x".to_owned(), String::new()),
        ],
        body: Bytes::from_static(body),
        truncated: true,
        wire_bytes: 7,
    }
}

fn sent_page() -> Vec<u8> {
    let mut wire = Vec::new();
    send_batch(&mut wire, LINKS, &[&page(b"<p>hello")]).unwrap();
    wire
}

fn read_batch(source: &mut impl Read) -> Result<Vec<RawPage>, FrameError> {
    Batch::read(source)?.pages(source)
}

fn read(mut wire: &[u8]) -> Result<Frame, FrameError> {
    Frame::read(&mut wire)
}

#[track_caller]
fn malformed<T: std::fmt::Debug>(result: Result<T, FrameError>) {
    assert!(matches!(result, Err(FrameError::Malformed(_))), "{result:?}");
}

/// Takes and gives one byte at a time, and is interrupted before each.
struct Reluctant {
    bytes: Vec<u8>,
    at: usize,
    interrupted: bool,
}

impl Reluctant {
    fn holding(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0, interrupted: false }
    }

    fn interrupt(&mut self) -> io::Result<()> {
        self.interrupted = !self.interrupted;
        if self.interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

impl Read for Reluctant {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt()?;
        let (Some(byte), Some(place)) = (self.bytes.get(self.at), buffer.first_mut()) else {
            return Ok(0);
        };
        *place = *byte;
        self.at += 1;
        Ok(1)
    }
}

impl Write for Reluctant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupt()?;
        self.bytes.extend(bytes.first());
        Ok(bytes.len().min(1))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_page_arrives_as_it_was_sent() {
    for body in [&b""[..], b"<p>hello", &[0; 3 << 20]] {
        let mut wire = Vec::new();
        send_batch(&mut wire, LINKS, &[&page(body)]).unwrap();
        assert_eq!(read_batch(&mut &wire[..]).unwrap(), [page(body)]);
    }
}

#[test]
fn pages_of_a_batch_arrive_together() {
    let (one, two, three) = (page(b"one"), page(b""), page(b"three"));
    let mut wire = Vec::new();
    send_batch(&mut wire, LINKS, &[&one, &two]).unwrap();
    send_batch(&mut wire, LINKS, &[&three]).unwrap();
    let mut left = &wire[..];
    assert_eq!(read_batch(&mut left).unwrap(), [one, two]);
    assert_eq!(read_batch(&mut left).unwrap(), [three]);
    assert!(matches!(read_batch(&mut left), Err(FrameError::Ended)));
}

#[test]
fn pages_can_be_taken_off_the_stream_before_their_turn() {
    let (one, two, three) = (page(b"one"), page(b""), page(b"three"));
    let mut wire = Vec::new();
    send_batch(&mut wire, LINKS, &[&one, &two, &three]).unwrap();
    let mut left = &wire[..];
    let mut batch = Batch::read(&mut left).unwrap();
    assert_eq!(batch.next_page(&mut left).unwrap(), Some(one));
    assert!(!left.is_empty());
    batch.take_off(&mut left).unwrap();
    assert!(left.is_empty());
    assert_eq!(batch.next_page(&mut left).unwrap(), Some(two));
    assert_eq!(batch.next_page(&mut left).unwrap(), Some(three));
    assert_eq!(batch.next_page(&mut left).unwrap(), None);
}

#[test]
fn a_batch_is_made_of_its_pages() {
    let mut wire = sent_page();
    wire.push(0);
    wire[5] += 1;
    malformed(read_batch(&mut &wire[..]));
    wire.truncate(wire.len() - 2);
    wire[5] -= 2;
    malformed(read_batch(&mut &wire[..]));
    wire.clear();
    send_batch(&mut wire, LINKS, &[]).unwrap();
    malformed(read_batch(&mut &wire[..]));
}

#[test]
fn an_answer_arrives_as_it_was_sent() {
    let parsed = telusur_parse::parse(
        &page(b"<title>T</title><a href=/b>text</a>"),
        &telusur_parse::ParseLimits::default(),
    );
    assert_eq!(parsed.links.len(), 1);
    let answers = [
        ParseReply::Parsed(Box::new(parsed)),
        ParseReply::Panicked("oh".into()),
        ParseReply::TooLarge,
    ];
    let mut wire = Vec::new();
    for answer in &answers {
        append_answer(&mut wire, answer).unwrap();
    }
    let mut left = &wire[..];
    for answer in answers {
        assert_eq!(Frame::read(&mut left).unwrap().into_answer(LINKS).unwrap(), answer);
    }
    assert!(matches!(Frame::read(&mut left), Err(FrameError::Ended)));
}

#[test]
fn an_answer_has_the_depth_that_was_asked_for() {
    let (mut links, mut everything) = (Vec::new(), Vec::new());
    append_answer(&mut links, &ParseReply::Parsed(Box::default())).unwrap();
    append_answer(&mut everything, &ParseReply::Read(Box::default())).unwrap();
    malformed(read(&links).unwrap().into_answer(Depth::Everything));
    malformed(read(&everything).unwrap().into_answer(LINKS));
    malformed(read(&links).unwrap().into_answer(Depth::Search(VisibleText::Left)));
    let answer = read(&everything).unwrap().into_answer(Depth::Everything).unwrap();
    assert_eq!(answer, ParseReply::Read(Box::default()));
}

#[test]
fn a_stream_may_give_and_take_as_little_as_it_likes() {
    let mut stream = Reluctant::holding(Vec::new());
    send_batch(&mut stream, LINKS, &[&page(b"<p>hello")]).unwrap();
    assert_eq!(stream.bytes, sent_page());
    assert_eq!(read_batch(&mut stream).unwrap(), [page(b"<p>hello")]);
}

#[test]
fn a_frame_that_is_cut_is_an_error_at_every_byte() {
    let wire = sent_page();
    assert!(matches!(read(&[]), Err(FrameError::Ended)));
    for cut in 1..wire.len() {
        assert!(matches!(read_batch(&mut &wire[..cut]), Err(FrameError::Io(_))), "cut at {cut}");
    }
}

#[test]
fn an_unknown_kind_is_malformed() {
    malformed(read(&[0; HEADER_BYTES]));
    malformed(read(&[9, 0, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn bytes_behind_the_head_are_malformed() {
    let mut wire = Vec::new();
    append_answer(&mut wire, &ParseReply::Panicked("oh".into())).unwrap();
    wire.push(0);
    wire[1] += 1;
    malformed(read(&wire).unwrap().into_answer(LINKS));
}

#[test]
fn a_frame_of_another_kind_is_malformed() {
    malformed(read(&sent_page()));
    let mut answer = Vec::new();
    append_answer(&mut answer, &ParseReply::TooLarge).unwrap();
    malformed(read(&answer).unwrap().into_hello());
    malformed(read_batch(&mut &answer[..]));
}

#[test]
fn another_version_is_malformed() {
    let jail = JailReport { landlock: Wall::Whole, seccomp: Wall::Partial };
    let hello = Hello::new(jail);
    let mut wire = Vec::new();
    send_hello(&mut wire, &hello).unwrap();
    assert_eq!(read(&wire).unwrap().into_hello().unwrap(), hello);
    let other = Hello { version: VERSION + 1, ..hello };
    wire.clear();
    send_hello(&mut wire, &other).unwrap();
    malformed(read(&wire).unwrap().into_hello());
}

#[test]
fn a_frame_beyond_the_limit_is_refused_before_it_is_read() {
    let header = [2, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(matches!(read(&header), Err(FrameError::TooLarge { .. })));
}

#[test]
fn a_page_beyond_the_limit_is_not_sent() {
    let large = RawPage { body: Bytes::from(vec![0; FRAME_BYTES_MAX]), ..page(b"") };
    let mut wire = Vec::new();
    assert!(matches!(send_batch(&mut wire, LINKS, &[&large]), Err(FrameError::TooLarge { .. })));
    assert!(wire.is_empty());
}

#[test]
fn an_answer_beyond_the_limit_is_said_to_be_one() {
    let text = "x".repeat(FRAME_BYTES_MAX);
    let parsed = ParsedPage { visible_text: text, ..ParsedPage::default() };
    let mut wire = Vec::new();
    append_answer(&mut wire, &ParseReply::Panicked("before".into())).unwrap();
    append_answer(&mut wire, &ParseReply::Parsed(Box::new(parsed))).unwrap();
    let mut left = &wire[..];
    let answers = [(); 2].map(|()| Frame::read(&mut left).unwrap().into_answer(LINKS).unwrap());
    assert_eq!(answers, [ParseReply::Panicked("before".into()), ParseReply::TooLarge]);
    assert!(left.is_empty());
}
