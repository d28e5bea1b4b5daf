//! The shop of the demo site: `/item/1` to `/item/60`, with holes, for crawls along a number.

use super::layout::{PageContent, link_list, paragraph, table};

/// The last number of the range. Nothing is sold under the last few numbers.
pub(super) const ITEM_LAST: u32 = 60;

/// Numbers under which there is nothing: holes of one, of two, and everything at the end.
const HOLES: [u32; 11] = [7, 19, 23, 24, 41, 42, 56, 57, 58, 59, 60];

/// The numbers under which something is sold.
pub(super) fn items() -> impl Iterator<Item = u32> {
    (1..=ITEM_LAST).filter(|number| !HOLES.contains(number))
}

pub(super) fn item_path(number: u32) -> String {
    format!("/item/{number}")
}

/// The number that stands in an item's address, if the item exists.
pub(super) fn item_at(path: &str) -> Option<u32> {
    items().find(|number| path.strip_prefix("/item/") == Some(number.to_string().as_str()))
}

pub(super) fn item_image_path(number: u32) -> String {
    format!("/img/item-{number}.png")
}

/// The page that lists all items.
pub(super) fn shop_page() -> PageContent {
    let links = items().map(|number| (item_path(number), item_name(number)));
    let main = paragraph("Things made by hand. Some numbers are sold out and will not come back.");
    PageContent::english("Shop", main + &link_list(links))
}

pub(super) fn item_page(number: u32) -> PageContent {
    let name = item_name(number);
    let (material, thing) = (material(number), thing(number));
    let town = TOWNS[number as usize % TOWNS.len()];
    let price = 15_000 + number * 7_500 % 200_000;
    let rows = vec![
        vec!["Property".to_owned(), "Value".to_owned()],
        vec!["Number".to_owned(), number.to_string()],
        vec!["Material".to_owned(), material.to_owned()],
        vec!["Made in".to_owned(), town.to_owned()],
        vec!["Price in rupiah".to_owned(), price.to_string()],
    ];
    let main = format!("<p><img src=\"{}\" alt=\"{name}\"></p>\n", item_image_path(number))
        + &paragraph(&format!("A {} of {material}, made in {town}. {}", thing.0, thing.1))
        + &table(&name, &rows)
        + &link_list([("/items", "Back to the shop")]);
    PageContent::english(name, main)
}

fn item_name(number: u32) -> String {
    format!("{} of {}", capitalised(thing(number).0), material(number))
}

/// Twelve materials and ten things give sixty different pairs, because both numbers count up
/// together and first meet again at 60.
fn material(number: u32) -> &'static str {
    MATERIALS[number as usize % MATERIALS.len()]
}

fn thing(number: u32) -> (&'static str, &'static str) {
    THINGS[number as usize % THINGS.len()]
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest
}

const MATERIALS: [&str; 12] = [
    "bamboo",
    "copper",
    "teak",
    "red clay",
    "rattan",
    "silver",
    "cotton",
    "palm leaf",
    "bronze",
    "coconut shell",
    "ebony",
    "river stone",
];

const TOWNS: [&str; 7] =
    ["Tasikmalaya", "Jepara", "Kotagede", "Lombok", "Ubud", "Bukittinggi", "Makassar"];

const THINGS: [(&str, &str); 10] = [
    ("basket", "It holds three kilos of rice and can be hung from a beam."),
    ("lamp", "A wick of cotton burns in it for a whole night."),
    ("kettle", "It whistles a little too early, as all of them do."),
    ("bowl", "No two of them have the same rim."),
    ("mat", "It can be rolled up and carried under one arm."),
    ("box", "The lid closes so slowly that the air can be heard leaving."),
    ("spoon", "Long enough for the deepest pot in the house."),
    ("bell", "It was tuned by ear and rings for eleven seconds."),
    ("tray", "Six glasses of tea fit on it, seven if they are friends."),
    ("stool", "It stands on three legs and therefore on any floor."),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn holes_are_where_they_should_be() {
        for (path, exists) in [
            ("/item/1", true),
            ("/item/6", true),
            ("/item/7", false),
            ("/item/8", true),
            ("/item/23", false),
            ("/item/24", false),
            ("/item/55", true),
            ("/item/56", false),
            ("/item/61", false),
            ("/item/0", false),
            ("/item/01", false),
            ("/item/", false),
        ] {
            assert_eq!(item_at(path).is_some(), exists, "{path}");
        }
        assert_eq!(items().count(), 49);
    }

    #[test]
    fn names_differ() {
        let names: HashSet<String> = items().map(item_name).collect();
        assert_eq!(names.len(), items().count());
    }
}
