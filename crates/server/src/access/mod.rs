//! Who may do what. A request is served if it was sent to a name of ours (so that no website can point
//! its own name at us), if a change does not come from another website, and if its key allows it. Where
//! nobody ever had a key, only this machine can reach us, and everything is allowed.

mod guard;
mod key_file;
mod key_ring;
mod pass;
mod rates;
mod scope;

pub(crate) use self::guard::{check_host, check_origin, is_json, may_be_browser};
pub use self::key_file::{KeyFile, KeyRingError, StoredKey};
pub(crate) use self::key_ring::{KeyRing, LOOK_EVERY};
pub(crate) use self::pass::Pass;
pub(crate) use self::rates::Rates;
pub use self::scope::Scope;

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};

/// The cookie that a browser carries its key in.
pub const KEY_COOKIE: &str = "telusur_key";

/// The key that a request carries: in a header, or in the cookie of the web pages. Never in the
/// address: that ends up in logs and histories.
pub(crate) fn key_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| key.trim());
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
    pairs.find(|(name, _)| name.trim() == KEY_COOKIE).map(|(_, key)| key.trim())
}
