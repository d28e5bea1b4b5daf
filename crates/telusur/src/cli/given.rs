//! Flags as settings: [`Given`] for those that were on the command line.

use crate::settings::{Given, Key, Raw};

/// A flag that sets its setting to this.
pub(super) fn of_flag(key: Key, raw: Raw) -> Given {
    Given { key, flag: key.setting().flag.expect("these keys have a flag"), raw }
}

/// Those of these flags with a text that were given.
pub(crate) fn given_texts<'a>(
    flags: impl IntoIterator<Item = (Key, &'a Option<String>)>,
) -> impl Iterator<Item = Given> {
    let flags = flags.into_iter();
    flags.filter_map(|(key, text)| Some(of_flag(key, Raw::Untyped(text.clone()?))))
}

/// Those of these flags with a list that were given.
pub(super) fn given_lists<'a>(
    flags: impl IntoIterator<Item = (Key, &'a Vec<String>)>,
) -> impl Iterator<Item = Given> {
    let flags = flags.into_iter().filter(|(_, items)| !items.is_empty());
    flags.map(|(key, items)| of_flag(key, Raw::List(items.clone())))
}
