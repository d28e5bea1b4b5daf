//! [`Parser`]: who reads pages. Here also the one that needs no child: [`InProcess`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use telusur_model::{ParsedPage, RawPage};
use telusur_parse::ParseLimits;

/// Reads pages. The calls block until the pages are read.
pub trait Parser: Send + Sync {
    /// Reads pages that are at hand together, which is cheaper than one by one; outcomes come in the
    /// order of the pages. An error means that no page can be read at present: the crawl stops
    /// loudly.
    fn parse_all(&self, pages: &[&RawPage]) -> Result<Vec<ParseOutcome>, PoolError>;

    /// Reads one page.
    fn parse(&self, page: &RawPage) -> Result<ParseOutcome, PoolError> {
        let mut outcomes = self.parse_all(&[page])?;
        Ok(outcomes.pop().expect("every page has an outcome"))
    }
}

/// What came of reading a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseOutcome {
    /// What is in the page.
    Parsed(Box<ParsedPage>),
    /// The page broke the parser. It is kept raw, and would break the parser again.
    Failed {
        /// How the parser broke, for people.
        why: String,
    },
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
}

/// Parses in the calling thread, without a jail. A page that makes the parser panic is
/// [`Failed`](ParseOutcome::Failed); one that makes it loop or overflow its stack is not stopped.
#[derive(Clone, Debug, Default)]
pub struct InProcess {
    limits: ParseLimits,
}

impl InProcess {
    /// A parser with these limits.
    pub fn new(limits: ParseLimits) -> Self {
        Self { limits }
    }
}

impl Parser for InProcess {
    fn parse_all(&self, pages: &[&RawPage]) -> Result<Vec<ParseOutcome>, PoolError> {
        let parse = |page: &&RawPage| {
            // Parsing is pure: whatever it had half done is dropped with the panic.
            match catch_unwind(AssertUnwindSafe(|| telusur_parse::parse(page, &self.limits))) {
                Ok(parsed) => ParseOutcome::Parsed(Box::new(parsed)),
                Err(panic) => ParseOutcome::Failed { why: panicked(panic_text(&*panic)) },
            }
        };
        Ok(pages.iter().map(parse).collect())
    }
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
