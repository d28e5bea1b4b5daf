//! [`Part`]: a part of a list. A cursor names the last thing that was shown, never a count: a list
//! stays in step while it grows.

use super::operation::Each;
use crate::error::RequestError;
use crate::json::ListEnd;

/// Hands over the items of a list, as many as were asked for, and remembers where it goes on.
pub(super) struct Part<'a, T> {
    each: Each<'a, T>,
    limit: Option<usize>,
    given: usize,
    last: Option<String>,
    has_more: bool,
}

impl<'a, T> Part<'a, T> {
    pub(super) fn new(limit: Option<usize>, each: Each<'a, T>) -> Self {
        Self { each, limit, given: 0, last: None, has_more: false }
    }

    /// Hands over an item; `place` names it. False: nothing more is wanted. One item more than wanted tells
    /// that there are more.
    pub(super) fn give(&mut self, item: T, place: impl FnOnce() -> String) -> bool {
        if let Some(limit) = self.limit {
            if self.given >= limit {
                self.has_more = true;
                return false;
            }
            self.last = Some(place());
        }
        self.given += 1;
        (self.each)(item)
    }

    /// How many items are still looked for, the one that tells that there are more included.
    pub(super) fn room(&self, max: usize) -> usize {
        self.limit.map_or(max, |limit| limit.saturating_add(1).saturating_sub(self.given).min(max))
    }

    /// What was read of a cursor.
    pub(super) fn cursor<P, E>(&self, read: Result<P, E>) -> Result<P, RequestError> {
        read.map_err(|_| no_cursor())
    }

    /// How the list ends.
    pub(super) fn end(self, total: Option<u64>) -> ListEnd {
        ListEnd { next: self.last.filter(|_| self.has_more), total }
    }
}

/// A cursor of another list, or of none.
pub(super) fn no_cursor() -> RequestError {
    RequestError::bad_field("cursor", "this is no cursor of this list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: Option<usize>, expect: &[u32], next: Option<&str>) {
        let mut given = Vec::new();
        let mut each = |item| {
            given.push(item);
            true
        };
        let mut part = Part::new(limit, &mut each);
        let _ = [1_u32, 2, 3].into_iter().all(|item| part.give(item, || item.to_string()));
        let end = part.end(Some(3));
        assert_eq!((end.next.as_deref(), end.total), (next, Some(3)));
        assert_eq!(given, expect);
    }

    #[test]
    fn a_part_says_where_the_list_goes_on() {
        check(None, &[1, 2, 3], None);
        check(Some(4), &[1, 2, 3], None);
        check(Some(3), &[1, 2, 3], None);
        check(Some(2), &[1, 2], Some("2"));
    }
}
