//! [`Parser`]: who reads pages. Here also the one that needs no child: [`InProcess`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use telusur_model::{PageContent, ParsedPage, RawPage, SearchPage};
use telusur_parse::{ContentLimits, ParseLimits};

/// Reads pages. The calls block until the pages are read.
pub trait Parser: Send + Sync {
    /// Reads what a crawl goes by out of pages that are at hand together, which is cheaper than one
    /// by one; outcomes come in the order of the pages. An error means that no page can be read at
    /// present: the crawl stops loudly.
    fn parse_all(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError>;

    /// Likewise, together with what a search goes by.
    fn read_for_search(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError>;

    /// Likewise, but reads everything that is in the pages.
    fn read_all(&self, pages: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError>;

    /// Ends the calls that are under way, as far as they can be ended: they fail with
    /// [`PoolError::Interrupted`]. For those who must not wait for a page any longer.
    fn interrupt(&self) {}

    /// Reads what a crawl goes by out of one page, with its text.
    fn parse(&self, page: &RawPage) -> Result<Reading<ParsedPage>, PoolError> {
        self.parse_all(&[page], VisibleText::Taken).map(only)
    }

    /// Reads everything that is in one page.
    fn read(&self, page: &RawPage) -> Result<Reading<PageContent>, PoolError> {
        self.read_all(&[page]).map(only)
    }
}

/// Whether the visible text of pages is wanted: it is most of what is in them, and few need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VisibleText {
    /// It is.
    Taken,
    /// It is left empty.
    Left,
}

fn only<T>(mut pages: Vec<ReadPage<T>>) -> Reading<T> {
    pages.pop().expect("every page has a reading").reading
}

/// What came of reading a page, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPage<T> {
    /// What came of it.
    pub reading: Reading<T>,
    /// The CPU time that it took, all attempts together. It is measured from outside: what a page
    /// makes of its reader must not make it look cheap.
    pub cpu: Duration,
    /// Children that it has killed.
    pub deaths: u32,
}

/// What came of reading a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// What is in the page.
    Read(Box<T>),
    /// The page broke the parser. It is kept raw, and would break the parser again.
    Failed {
        /// How the parser broke, for people.
        why: String,
    },
}

impl<T> Reading<T> {
    /// The same reading of something else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Read(found) => Reading::Read(Box::new(change(*found))),
            Self::Failed { why } => Reading::Failed { why },
        }
    }
}

/// Why no page can be read.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The first children could not be started.
    #[error("start a parser child: {why}")]
    Start {
        /// What went wrong, on what.
        why: String,
    },
    /// Children die although they are given harmless work, or none: something is wrong with this
    /// machine, not with a page.
    #[error(
        "{times} parser children in a row died without having read a page, the last one: {why} \
         (with --parsers 0 pages are parsed without a jail)"
    )]
    ChildrenDie {
        /// How many, since a page was read.
        times: u32,
        /// How the last one died.
        why: String,
    },
    /// The caller could not wait any longer: the page may be read at another time.
    #[error("reading was interrupted")]
    Interrupted,
}

/// Parses in the calling thread, without a jail. A page that makes the parser panic is
/// [`Failed`](Reading::Failed); one that makes it loop or overflow its stack is not stopped.
#[derive(Clone, Debug)]
pub struct InProcess {
    parse: ParseLimits,
    content: ContentLimits,
    search: ContentLimits,
}

impl Default for InProcess {
    fn default() -> Self {
        Self {
            parse: ParseLimits::default(),
            content: ContentLimits::default(),
            search: ContentLimits::for_search(),
        }
    }
}

impl InProcess {
    /// Parses one page; panics are the caller's.
    pub(crate) fn parse_page(&self, page: &RawPage, text: VisibleText) -> ParsedPage {
        let mut parsed = telusur_parse::parse(page, &self.parse);
        if text == VisibleText::Left {
            parsed.visible_text = String::new();
        }
        parsed
    }

    /// Reads one page for search as well; panics are the caller's.
    pub(crate) fn search_page(&self, page: &RawPage, text: VisibleText) -> SearchPage {
        let mut read = telusur_parse::read_for_search(page, &self.search);
        if text == VisibleText::Left {
            read.parsed.visible_text = String::new();
        }
        read
    }

    /// Reads everything in one page; panics are the caller's.
    pub(crate) fn read_page(&self, page: &RawPage) -> PageContent {
        telusur_parse::read_page(page, &self.content)
    }
}

impl Parser for InProcess {
    fn parse_all(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        Ok(pages.iter().map(|page| guarded(|| self.parse_page(page, text))).collect())
    }

    fn read_for_search(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        Ok(pages.iter().map(|page| guarded(|| self.search_page(page, text))).collect())
    }

    fn read_all(&self, pages: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        Ok(pages.iter().map(|page| guarded(|| self.read_page(page))).collect())
    }
}

/// Reads a page, and survives a panic. Reading is pure: its unfinished work is dropped with
/// the panic.
fn guarded<T>(read: impl FnOnce() -> T) -> ReadPage<T> {
    let before = thread_cpu();
    let reading = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(found) => Reading::Read(Box::new(found)),
        Err(panic) => Reading::Failed { why: panicked(panic_text(&*panic)) },
    };
    ReadPage { reading, cpu: thread_cpu().saturating_sub(before), deaths: 0 }
}

/// The CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The words for a page at which the parser panicked.
pub(crate) fn panicked(text: &str) -> String {
    format!("the parser panicked: {text}")
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "without a word"
    }
}
