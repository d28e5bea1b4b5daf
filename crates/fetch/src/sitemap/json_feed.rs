//! JSON Feed (jsonfeed.org): items are taken one by one as they are read, so that a file that breaks
//! off gives all items before the break.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use super::{EntryKind, Format, Reading, Trouble, entries::Entries};

pub(super) fn read(text: &str, entries: &mut Entries) -> Reading {
    let mut feed = Feed { entries, has_items: false };
    // serde_json refuses more than 128 levels, so depth is bounded too.
    let mut json = serde_json::Deserializer::from_str(text);
    let result = json.deserialize_map(&mut feed);
    if !feed.has_items {
        return Reading::not_a_sitemap();
    }
    let trouble = result.err().map(|error| match error.classify() {
        Category::Eof => Trouble::Truncated,
        Category::Syntax | Category::Data | Category::Io => Trouble::Malformed(error.to_string()),
    });
    Reading { format: Some(Format::JsonFeed), trouble }
}

/// The parts of an item that matter. Any JSON is accepted for them: one odd item must not end the
/// reading of all.
#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    url: Value,
    #[serde(default)]
    date_modified: Value,
    #[serde(default)]
    date_published: Value,
}

struct Feed<'e> {
    entries: &'e mut Entries,
    has_items: bool,
}

impl Feed<'_> {
    fn add(&mut self, item: &Item) {
        let date = item.date_modified.as_str().or_else(|| item.date_published.as_str());
        self.entries.push(EntryKind::Page, item.url.as_str().unwrap_or_default(), date);
    }
}

/// Visits the object that is the feed.
impl<'de> Visitor<'de> for &mut Feed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON feed")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "items" {
                map.next_value_seed(Items(self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Visits the array of its items.
struct Items<'f, 'e>(&'f mut Feed<'e>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a JSON feed")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        self.0.has_items = true;
        while let Some(item) = items.next_element::<Item>()? {
            self.0.add(&item);
        }
        Ok(())
    }
}
