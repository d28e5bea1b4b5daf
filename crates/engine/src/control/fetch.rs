//! One page from the web, fetched now and stored nowhere.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use telusur_model::{FetchRules, PageContent, PageUrl, Politeness, RawPage, Reason};
use telusur_parse_pool::Reading;

use super::handle::{Control, read_url};
use super::operation::{Each, Length, NoItem, Operation, OperationKind};
use crate::error::RequestError;
use crate::request::Rights;
use crate::single_fetch::{Arrived, FetchError, FetchRequest, NotFetched};
use crate::stored_page::unreadable;

/// A page as it is on the web now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchPage {
    /// Its URL.
    pub url: String,
    /// How it is asked for.
    pub fetch: FetchRules,
    /// How its host is treated.
    pub politeness: Politeness,
    /// Decoded bytes of the body that are read.
    pub body_bytes_max: u64,
    /// Longest that it waits for a host before a request, in milliseconds.
    pub wait_ms_max: u64,
}

/// What came of a [`FetchPage`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchOutcome {
    /// The page.
    Fetched(Box<FetchedPage>),
    /// It could not be fetched.
    NotFetched {
        /// Where it ended.
        url: String,
        /// Why.
        why: Reason,
        /// What exactly, for people.
        detail: String,
    },
    /// The host may not be asked soon enough.
    MustWait {
        /// Which.
        host: String,
        /// When to come again, in milliseconds.
        retry_after_ms: u64,
    },
}

/// A page with everything that is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchedPage {
    /// Its URL, behind all redirects.
    pub url: PageUrl,
    /// The HTTP status.
    pub status: u16,
    /// The URLs that redirected here, first to last.
    pub redirects: Vec<String>,
    /// The headers of the answer.
    pub headers: Vec<(String, String)>,
    /// The decoded body in base 64.
    pub body: String,
    /// Whether the body was cut at the limit.
    pub truncated: bool,
    /// Bytes that came over the wire.
    pub wire_bytes: u64,
    /// How long the last request took.
    pub took_ms: u64,
    /// What is in it; `None` if it cannot be parsed.
    pub content: Option<PageContent>,
    /// How it broke the parser, if it did.
    pub parse_failed: Option<String>,
}

impl FetchedPage {
    /// The answer as it came.
    pub fn raw(&self) -> RawPage {
        RawPage {
            url: self.url.clone(),
            status: self.status,
            headers: self.headers.clone(),
            body: BASE64.decode(self.body.as_bytes()).unwrap_or_default().into(),
            truncated: self.truncated,
            wire_bytes: self.wire_bytes,
        }
    }
}

impl Operation for FetchPage {
    const KIND: OperationKind = OperationKind::FetchPage;
    // What robots.txt says is stored.
    const MAY_WRITE: bool = true;
    const LENGTH: Length = Length::Long;
    type Item = NoItem;
    type Reply = FetchOutcome;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<FetchOutcome, RequestError> {
        // The request says which addresses may be asked, and as whom.
        if control.policy.rights != Rights::Owner {
            let what = "fetching by rules of one's own is for the owner of the data directory";
            return Err(RequestError::BadArgument(what.to_owned()));
        }
        let url = read_url(&self.url)?;
        let request = FetchRequest {
            named: url.clone(),
            url,
            fetch: self.fetch.clone(),
            politeness: self.politeness.clone(),
            body_bytes_max: self.body_bytes_max,
            wait_ms_max: self.wait_ms_max,
        };
        let mut fetched = None;
        control.engine(async |engine| {
            fetched = Some(engine.fetch(request).await);
            Ok(())
        })?;
        match fetched.ok_or(RequestError::Stopped)? {
            Ok(arrived) => Ok(FetchOutcome::Fetched(Box::new(read(control, arrived)?))),
            Err(FetchError::NotFetched(NotFetched { url, why, detail })) => {
                Ok(FetchOutcome::NotFetched { url, why, detail })
            }
            Err(FetchError::MustWait { host, retry_after_ms }) => {
                Ok(FetchOutcome::MustWait { host: host.to_string(), retry_after_ms })
            }
            Err(FetchError::Refused(error)) => Err(error),
        }
    }
}

fn read(control: &Control, arrived: Arrived) -> Result<FetchedPage, RequestError> {
    let Arrived { page, redirects, took_ms } = arrived;
    let (content, parse_failed) = match control.pages.parser.read(&page).map_err(unreadable)? {
        Reading::Read(content) => (Some(*content), None),
        Reading::Failed { why } => (None, Some(why)),
    };
    Ok(FetchedPage {
        url: page.url,
        status: page.status,
        redirects,
        headers: page.headers,
        body: BASE64.encode(&page.body),
        truncated: page.truncated,
        wire_bytes: page.wire_bytes,
        took_ms,
        content,
        parse_failed,
    })
}
