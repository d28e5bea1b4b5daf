//! Makes stored pages searchable: a full-text index, ranking, snippets, facets, link rank.
//!
//! It is handed documents and a checkpoint, and answers queries. It opens no connection, knows no
//! store and reads no clock. Read in the order of the flow: [`IndexDoc`] goes into a
//! [`SearchIndex`]; a [`Query`] is read leniently, finds candidates, ranks them, folds what says
//! the same, and comes out as [`Results`].

mod document;
mod index;

mod checkpoint;
mod columns;
mod fields;
mod files;
mod writer_lease;

mod analysis;
mod dictionary;
mod query;

mod search;

mod near_duplicates;
mod view;

mod links;
mod top_linked;

mod compaction;
mod merging;

mod error;
mod inert;

pub use analysis::Language;
pub use document::{DocKey, IndexDoc, OutLink};
pub use error::IndexError;
pub use files::SyncHook;
pub use index::{FORMAT, IndexLimits, LinkLag, SearchIndex};
pub use inert::{escape_html, inert};
pub use links::{LinkGraph, LinkGraphBuilder, Ranks};
pub use near_duplicates::Sketch;
pub use query::{Column, FacetBy, Filter, HITS_MAX, Query, Sort};
pub use search::{Explanation, FacetCount, Facets, Hit, Results, Snippet};
pub use top_linked::{OfCrawls, TopPage, TopSite};
