//! The words of Telusur, as types. Everything else is written in terms of these.
//!
//! Read in the order of the modules: a [`PageUrl`] belongs to a [`Host`] and a [`Site`]; a
//! [`Crawl`] is what a user asked for; its [`Scope`] judges every link; an admitted link becomes a
//! [`Visit`]; a visit brings a [`RawPage`], which parses to a [`ParsedPage`], of which a
//! [`PageRecord`] is kept. This crate does no I/O, reads no clock and knows no runtime.

mod content;
mod content_kind;
mod crawl;
mod excluded_start;
mod fetch_rules;
mod fetched;
mod findings;
mod host;
mod left_out;
mod linear;
mod link_rules;
mod origin;
mod parsed;
mod pattern;
mod printable;
mod progress;
mod reason;
mod record;
mod scope;
mod time;
mod url;
mod url_key;
mod url_shape;
mod visit;
mod words;

pub use crate::content::{
    Alternate, Cell, Dropped, Feed, FeedEntry, Form, FormField, Heading, Image, JsonLd, List,
    ListItem, MetaProperty, PageContent, Script, Style, Table,
};
pub use crate::content_kind::ContentKind;
pub use crate::crawl::{
    Crawl, CrawlId, CrawlNo, CrawlState, EngineFault, Fairness, FinishReason, Keep, Limits,
    LinearSeeds, PauseReason, Politeness, RobotsRules, Seeds, SitemapRules,
};
pub use crate::excluded_start::ExcludedStart;
pub use crate::fetch_rules::{
    BasicAuth, FetchRules, HeaderFault, HttpVersion, Secret, UnboundSecret, check_header,
    is_header_text, origin_of, split_origin,
};
pub use crate::fetched::{
    FetchOutcome, Fetched, MediaType, NetworkSign, RawPage, Retry, Validators, is_content_coding,
    looks_binary,
};
pub use crate::findings::{Findings, SearchPage};
pub use crate::host::{Host, SLOTS, Site, Slot};
pub use crate::left_out::LeftOut;
pub use crate::linear::{
    Coverage, CoverageCounts, Direction, ID_RANGES_MAX, IdListError, IdOutcome, IdRanges, IdRun,
    IdState, LegCoverage, LegPlan, LegState, MISSING_TEXT_BYTES_MAX, MissingError, MissingPages,
    MissingRules, Rates, Resume, Run, Strip, StripCell, Template, TemplateError, TemplateFault,
    Walk, WalkCoverage, WalkError, WalkRules, overlay,
};
pub use crate::link_rules::LinkRules;
pub use crate::origin::{Door, NotFoundLook, OriginRow, RobotsAnswer};
pub use crate::parsed::{Link, LinkKind, ParsedPage, Warning};
pub use crate::printable::{is_treacherous, printable, printable_lines};
pub use crate::progress::{
    HostRow, JainSums, ParkedHost, Progress, RequestHistory, SiteShare, jain_index,
};
pub use crate::reason::Reason;
pub use crate::record::{BlobRef, Change, CrawlStats, Digest, Directives, IdCounts, PageRecord};
pub use crate::scope::{
    CompiledPatterns, LinkVerdict, QueryParams, Scope, ScopeError, ScopeKind, ScopeRules, SeedSite,
    Verdict, matches_topic,
};
pub use crate::time::{Clock, Moment, Timestamp, days_from_civil};
pub use crate::url::{PageUrl, URL_BYTES_MAX, UrlError, join};
pub use crate::url_key::{UrlKey, UrlKeyer, normal_form};
pub use crate::url_shape::UrlShape;
pub use crate::visit::{Discovery, Lane, Purpose, QueuePlace, Via, Visit};
