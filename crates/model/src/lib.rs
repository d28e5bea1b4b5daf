//! The words of Telusur, as types. Everything else is written in terms of these.
//!
//! Read in the order of the modules: a [`PageUrl`] belongs to a [`Host`] and a [`Site`]; a
//! [`Crawl`] is what a user asked for; its [`Scope`] judges every link; an admitted link becomes a
//! [`Visit`]; a visit brings a [`RawPage`], which parses to a [`ParsedPage`], of which a
//! [`PageRecord`] is kept. This crate does no I/O, reads no clock and knows no runtime.

mod content;
mod crawl;
mod fetched;
mod host;
mod parsed;
mod progress;
mod reason;
mod record;
mod scope;
mod time;
mod url;
mod url_key;
mod visit;

pub use crate::content::{
    Alternate, Cell, Dropped, Feed, FeedEntry, Form, FormField, Heading, Image, JsonLd, List,
    ListItem, MetaProperty, PageContent, Script, Style, Table,
};
pub use crate::crawl::{
    Crawl, CrawlId, CrawlNo, CrawlState, Fairness, FetchRules, FinishReason, Keep, Limits,
    PauseReason, Politeness, Seeds,
};
pub use crate::fetched::{FetchOutcome, Fetched, RawPage, Retry};
pub use crate::host::{Host, SLOTS, Site, Slot};
pub use crate::parsed::{Link, LinkKind, ParsedPage, Warning};
pub use crate::progress::{HostRow, Progress, SiteShare, jain_index};
pub use crate::reason::Reason;
pub use crate::record::{BlobRef, CrawlStats, Digest, PageRecord};
pub use crate::scope::{
    QueryParams, Scope, ScopeError, ScopeKind, ScopeRules, SeedSite, Verdict, matches_topic,
};
pub use crate::time::{Clock, Moment, Timestamp};
pub use crate::url::{PageUrl, URL_BYTES_MAX, UrlError};
pub use crate::url_key::{UrlKey, UrlKeyer, normal_form};
pub use crate::visit::{Discovery, Lane, QueuePlace, Via, Visit};
