//! [`LettingIn`]: links that the budgets of a crawl had left out are on their way into its queue. Until they
//! are there, the crawl has not come to its end. Pure.

use telusur_model::FinishReason;

/// What a crawl waits for after its budgets were raised.
#[derive(Clone, Debug, Default)]
pub(crate) struct LettingIn {
    /// Steps of the store that let links in. A budget may be raised again before the first has ended.
    under_way: u32,
    /// Why the frontier had nothing left in the meantime.
    drained: Option<FinishReason>,
}

impl LettingIn {
    /// A step that lets links in is on its way to the store.
    pub(crate) fn begin(&mut self) {
        self.under_way += 1;
    }

    /// The frontier has nothing left. Gives the reason if the crawl is to end now.
    pub(crate) fn drained(&mut self, why: FinishReason) -> Option<FinishReason> {
        if self.under_way == 0 {
            return Some(why);
        }
        self.drained = Some(why);
        None
    }

    /// A step has ended. `is_any`: it brought links, and the frontier says so again when it has come to
    /// their end. Gives the reason if the crawl is to end now.
    pub(crate) fn ended(&mut self, is_any: bool) -> Option<FinishReason> {
        self.under_way = self.under_way.saturating_sub(1);
        if is_any {
            self.drained = None;
        }
        if self.under_way == 0 { self.drained.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHY: FinishReason = FinishReason::Drained;

    #[test]
    fn a_crawl_ends_when_nothing_is_let_in() {
        let mut letting_in = LettingIn::default();
        assert_eq!(letting_in.drained(WHY), Some(WHY));
        letting_in.begin();
        assert_eq!(letting_in.drained(WHY), None);
        assert_eq!(letting_in.ended(false), Some(WHY));
        letting_in.begin();
        assert_eq!(letting_in.drained(WHY), None);
        assert_eq!(letting_in.ended(true), None, "it has links again");
        assert_eq!(letting_in.drained(WHY), Some(WHY));
    }

    /// The second raise may bring what the first one did not.
    #[test]
    fn two_quick_raises_are_both_waited_for() {
        let mut letting_in = LettingIn::default();
        letting_in.begin();
        letting_in.begin();
        assert_eq!(letting_in.drained(WHY), None);
        assert_eq!(letting_in.ended(false), None, "the second is under way");
        assert_eq!(letting_in.drained(WHY), None);
        assert_eq!(letting_in.ended(true), None);
        assert_eq!(letting_in.drained(WHY), Some(WHY));
    }
}
