//! Tables that are sorted by host, read side by side.

use std::cmp::Ordering;

use telusur_model::Host;

use crate::StoreError;

/// Adds up the rows of each host. Rows of one host are next to each other.
pub(super) fn count_by_host(
    hosts: impl Iterator<Item = Result<Host, StoreError>>,
) -> impl Iterator<Item = Result<(Host, u64), StoreError>> {
    let mut hosts = hosts.peekable();
    std::iter::from_fn(move || {
        let host = match hosts.next()? {
            Ok(host) => host,
            Err(error) => return Some(Err(error)),
        };
        let mut count = 1;
        while hosts.next_if(|next| next.as_ref().is_ok_and(|next| *next == host)).is_some() {
            count += 1;
        }
        Some(Ok((host, count)))
    })
}

/// Calls `each` with every host that occurs on either side, and what the sides say about it. Both are
/// in the order of the hosts.
pub(super) fn join<L, R>(
    left: impl Iterator<Item = Result<(Host, L), StoreError>>,
    right: impl Iterator<Item = Result<(Host, R), StoreError>>,
    mut each: impl FnMut(Host, Option<L>, Option<R>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (mut left, mut right) = (left, right);
    let (mut next_left, mut next_right) = (left.next().transpose()?, right.next().transpose()?);
    loop {
        let order = match (&next_left, &next_right) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        let one = if order.is_le() { next_left.take() } else { None };
        let other = if order.is_ge() { next_right.take() } else { None };
        let (host, one, other) = match (one, other) {
            (Some((host, one)), other) => (host, Some(one), other.map(|(_, other)| other)),
            (None, Some((host, other))) => (host, None, Some(other)),
            (None, None) => return Ok(()),
        };
        each(host, one, other)?;
        if order.is_le() {
            next_left = left.next().transpose()?;
        }
        if order.is_ge() {
            next_right = right.next().transpose()?;
        }
    }
}
