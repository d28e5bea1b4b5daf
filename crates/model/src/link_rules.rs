//! [`LinkRules`]: what a running crawl has learned about links that its scope alone would admit.

use std::fmt::Debug;

use crate::{PageUrl, Reason};

/// What was learned on the way: rules of robots.txt that are known, traps that were found out. Asked
/// for every new link before it is admitted, so that what will not be fetched uses up no budget.
pub trait LinkRules: Debug + Send + Sync {
    /// Why a link is not followed, and by which rule; `None`: nothing is known against it.
    fn refusal(&self, link: &PageUrl) -> Option<(Reason, String)>;
}
