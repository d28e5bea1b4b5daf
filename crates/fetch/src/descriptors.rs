//! How the limit of open files is shared out. Without shares, connections would take the last
//! descriptor, and the store, which cannot wait for one, would have to give up.

use rustix::process::{Resource, getrlimit, setrlimit};

/// What a crawl holds open besides connections and cached files: counted on a crawl with two parsers
/// (28 in `/proc/PID/fd`), with room for a merge of the index.
const KEPT_FOR_OURSELVES: u64 = 32;

/// One share for sites, one for clients, one for files, one spare.
const SHARES: u64 = 4;

/// As many as are of any use here: 4,096 connections each way.
const ENOUGH: u64 = KEPT_FOR_OURSELVES + SHARES * 4096;

/// Raises the limit of open files as far as is useful and allowed. The lower one protects old programs
/// that cannot count further.
pub fn raise_open_files_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        // Then the old one holds, and the shares are smaller.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The most connections to sites that may be open, and as many again from clients.
pub fn connections_share() -> usize {
    share_of(getrlimit(Resource::Nofile).current.unwrap_or(ENOUGH))
}

fn share_of(limit: u64) -> usize {
    let share = limit.min(ENOUGH).saturating_sub(KEPT_FOR_OURSELVES) / SHARES;
    usize::try_from(share).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_shared_out_too() {
        for (limit, share) in [(10, 1), (64, 8), (1024, 248), (8192, 2040), (1 << 20, 4096)] {
            assert_eq!(share_of(limit), share, "{limit}");
        }
    }
}
