//! The words of a linear crawl: pages that differ in a number. A [`Template`] turns an id into a
//! URL and back; a [`Walk`] says which ids are asked, in which order and until when; a [`Run`] is
//! a range of ids in one state. Nothing here keeps state: that is the frontier's part.

mod coverage;
mod id_ranges;
mod missing;
mod run;
mod template;
mod walk;

pub use coverage::{
    Coverage, CoverageCounts, IdRun, LegCoverage, LegState, Strip, StripCell, WalkCoverage,
};
pub use id_ranges::{ID_RANGES_MAX, IdListError, IdRanges};
pub use missing::{MISSING_TEXT_BYTES_MAX, MissingError, MissingPages, MissingRules};
pub use run::{IdOutcome, IdState, Run, overlay};
pub use template::{Template, TemplateError, TemplateFault};
pub(crate) use walk::stored as stored_walks;
pub use walk::{Direction, LegPlan, Rates, Resume, Walk, WalkError, WalkRules};
